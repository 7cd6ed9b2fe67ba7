import type { NarName } from "../../nix/nar_name.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import { type NarAnswer, STORED_WHOLE_BYTES_MAX } from "../nar/nar_answer.ts";
import type { OpenKeptFile } from "./kept_nars.ts";

/** The answer from a kept file. */
export function storedAnswer(
  narName: NarName,
  { kept, stored }: OpenKeptFile,
  reads: ActiveReads,
): NarAnswer {
  const { fileSize } = stored;
  let leave: (() => void) | undefined;
  return {
    source: "HIT",
    fileSize,
    tag: kept.fileHash,
    whole(options) {
      if (fileSize > STORED_WHOLE_BYTES_MAX) return undefined;
      if (stored.isInMemory) return stored.bytes();
      return options?.savesMemory ? undefined : stored.bytes(options);
    },
    async read(start, end = fileSize, options) {
      const body = stored.read(start, end, options);
      leave = reads.begin(narName);
      return body;
    },
    release: () => leave?.(),
    [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
  };
}
