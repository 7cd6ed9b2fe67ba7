import { Buffer } from "node:buffer";

/**
 * A copy of a text, for a part of a longer one that stays in memory. The engine keeps the whole of
 * a text for each part of it.
 */
export function ownText<Text extends string>(part: Text): Text {
  return Buffer.from(part).toString() as Text;
}
