import type { NarRecord } from "../../metadata/metadata_store.ts";
import type { Compression } from "../../nix/compression.ts";
import { clock } from "../../runtime/current.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { NarForms } from "../forms/nar_forms.ts";
import { formOf } from "../forms/recompressed.ts";
import { type NarAnswer, type Requester, STORED_WHOLE_BYTES_MAX } from "../nar/nar_answer.ts";
import type { KeptNars, OpenKeptFile } from "./kept_nars.ts";

/** The time in which another server must open a file. It needs milliseconds. */
const HAND_OVER_MS = 10_000;

export interface StoredAnswerDeps {
  readonly kept: Pick<KeptNars, "open">;
  readonly reads: ActiveReads;
  readonly forms: Pick<NarForms, "answer" | "broke">;
}

/** The answer from the kept file of a NAR, in the compression `to`; `undefined` without one. */
export async function openStored(
  { kept, reads, forms }: StoredAnswerDeps,
  nar: NarRecord,
  { requestId, client }: Requester,
  to: Compression = nar.compression,
): Promise<NarAnswer | undefined> {
  const file = await kept.open(nar, requestId, client);
  if (file === undefined) return undefined;
  const answer = storedAnswer(nar, file, { reads, forms, address: client.peer });
  return forms.answer(answer, nar, formOf(nar, file.kept), to);
}

interface StoredAnswerReader {
  readonly reads: ActiveReads;
  readonly forms: Pick<NarForms, "broke">;
  readonly address: string | undefined;
}

function storedAnswer(
  nar: NarRecord,
  { kept, stored }: OpenKeptFile,
  { reads, forms, address }: StoredAnswerReader,
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
      leave = reads.beginSend(nar.name, address);
      return body;
    },
    handOver: stored.isInMemory ? undefined : async () => {
      clock.after(HAND_OVER_MS, reads.begin(nar.name), false);
      // Nobody tells whether the client gets all of it.
      void forms.broke({ ...nar, kept });
      await stored[Symbol.asyncDispose]();
      return kept.at;
    },
    release(isWhole) {
      leave?.();
      if (!isWhole) void forms.broke({ ...nar, kept });
    },
    [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
  };
}
