import type { NarRecord } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { Requester } from "../nar/requester.ts";
import { type NarAnswer, STORED_WHOLE_BYTES_MAX } from "../nar/nar_answer.ts";
import type { KeptNars, OpenKeptFile } from "./kept_nars.ts";

/** The time in which another server must open a file. It needs milliseconds. */
const HAND_OVER_MS = 10_000;

export interface StoredAnswerDeps {
  readonly kept: Pick<KeptNars, "open">;
  readonly reads: ActiveReads;
}

/** The answer from the kept file of a NAR; `undefined` without one. */
export async function openStored(
  { kept, reads }: StoredAnswerDeps,
  nar: NarRecord,
  { requestId, client }: Requester,
): Promise<NarAnswer | undefined> {
  const file = await kept.open(nar, requestId, client);
  return file && storedAnswer(nar.name, file, { reads, address: client.peer });
}

interface StoredAnswerReader {
  readonly reads: ActiveReads;
  readonly address: string | undefined;
}

function storedAnswer(
  narName: NarName,
  { kept, stored }: OpenKeptFile,
  { reads, address }: StoredAnswerReader,
): NarAnswer {
  const { fileSize } = stored;
  let leave: (() => void) | undefined;
  return {
    cacheResult: "HIT",
    fileSize,
    tag: kept.fileHash,
    whole(options) {
      if (fileSize > STORED_WHOLE_BYTES_MAX) return undefined;
      if (stored.isInMemory) return stored.bytes();
      return options?.savesMemory ? undefined : stored.bytes(options);
    },
    async read(start, end = fileSize, options) {
      const body = stored.read(start, end, options);
      leave = reads.beginSend(narName, address);
      return body;
    },
    handOver: stored.isInMemory ? undefined : async () => {
      clock.after(HAND_OVER_MS, reads.begin(narName), false);
      await stored[Symbol.asyncDispose]();
      return kept.at;
    },
    release: () => leave?.(),
    [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
  };
}
