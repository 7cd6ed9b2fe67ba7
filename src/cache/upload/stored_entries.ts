import { Failure } from "../../base/failure.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { KeptFile, NarRecord } from "../../metadata/metadata_store.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import type { Requester } from "../nar/nar_answer.ts";
import type { Touches } from "../touches.ts";

/** Stored entries: opens them, protects reads from eviction, and notes their use. */
export interface StoredEntries {
  readonly kept: Pick<KeptNars, "open">;
  readonly reads: ActiveReads;
  readonly touches: Pick<Touches, "narinfo" | "nar" | "document">;
}

/** The file of the row, if it is stored and undamaged. */
export async function keptFile(
  { kept }: Pick<StoredEntries, "kept">,
  nar: NarRecord,
  { requestId, client }: Requester,
): Promise<KeptFile | undefined> {
  const file = await kept.open(nar, requestId, client);
  await file?.stored[Symbol.asyncDispose]();
  return file?.kept;
}

/**
 * Opens NAR files for clients that push, which skip what is here: bytes in memory are no proof.
 * Throws while the store does not answer. A client retries after a 503, and gives up when a file is
 * missing.
 */
export function openForPush(kept: Pick<KeptNars, "find">): Pick<KeptNars, "open"> {
  return {
    async open(nar, requestId, options) {
      try {
        return await kept.find(nar, requestId, { signal: options.signal, fresh: true });
      } catch (error) {
        if (!(error instanceof Failure) || error.kind !== "unavailable") throw error;
        throw new Failure("overloaded", error.message, error.facts, error);
      }
    },
  };
}
