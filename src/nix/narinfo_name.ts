import { STORE_DIR } from "./store_path.ts";

const NAME_REGEXP = new RegExp(`^StorePath: ${STORE_DIR}/[^-\\n]*-(.+)$`, "m");

/** The name in the store path of a narinfo's text, such as `hello-2.12`. */
export function nameInNarinfo(text: string): string | undefined {
  return NAME_REGEXP.exec(text)?.[1];
}
