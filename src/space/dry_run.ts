import type { SpaceKeeper } from "../metadata/space_keeper.ts";
import type { NarName } from "../nix/nar_name.ts";
import { clock } from "../runtime/current.ts";
import type { ActiveReads } from "./active_reads.ts";
import type { RunFigures } from "./evictor.ts";

/** Entries in one read: it stops the thread for a few milliseconds. */
const ENTRIES_MAX = 256;

export interface DryRunDeps {
  readonly metadata: Pick<SpaceKeeper, "coldest">;
  readonly reads: Pick<ActiveReads, "names">;
}

/** The figures of an eviction of `bytesMin` bytes. The protection must be settled. */
export async function dryRun(
  { metadata, reads }: DryRunDeps,
  bytesMin: number,
): Promise<RunFigures> {
  const spared = reads.names();
  const sharersLeft = new Map<NarName, number>();
  let [freedBytes, evictedEntries, evictedFiles] = [0, 0, 0];
  let after: string | undefined;
  while (freedBytes < bytesMin) {
    const page = await metadata.coldest(ENTRIES_MAX, after);
    after = page.at(-1)?.cursor;
    if (after === undefined) break;
    for (const { narName, keptBytes, sharers, storePathHash } of page) {
      if (freedBytes >= bytesMin) break;
      if (spared.has(narName)) continue;
      evictedEntries++;
      const left = storePathHash === undefined ? 0 : (sharersLeft.get(narName) ?? sharers) - 1;
      sharersLeft.set(narName, left);
      if (left > 0) continue;
      freedBytes += keptBytes;
      evictedFiles++;
    }
    await clock.pause(0);
  }
  return { freedBytes, evictedEntries, evictedFiles };
}
