import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { type PendingFileColumns, readPendingFile } from "../rows.ts";
import type { Evicted, PendingFile } from "../space_keeper.ts";
import { NAR_GRACE_MS, PATHS_PER_ROW, type RowSweepOrder, type SweptRows } from "../row_sweeper.ts";
import type { WriteOutcome } from "./writer.ts";

/** The argument of `sweep_rows`. */
export function sweepArgument({ unusedSinceMs, rowsMax, spared, after = "" }: RowSweepOrder) {
  return {
    ...{ unusedSinceMs, rowsMax, spared: [...spared], graceMs: NAR_GRACE_MS },
    ...(after === "" ? {} : { afterId: Number(after), pathsMax: rowsMax * PATHS_PER_ROW }),
  };
}

/** The outcome of `sweep_rows`, which began after the row `after`. */
export function readSweptRows(outcome: WriteOutcome, after = ""): SweptRows {
  const settled = outcome["settled"] === true;
  const { narinfos = [], nars = [], paths = 0, lastId } = outcome as Partial<{
    readonly narinfos: readonly StorePathHash[];
    readonly nars: readonly NarName[];
    readonly paths: number;
    readonly lastId: number | null;
  }>;
  const swept = { narinfos, nars, paths, settled };
  if (!settled) return { ...swept, next: after };
  if (after !== "") return lastId ? { ...swept, next: String(lastId) } : swept;
  return { ...swept, next: narinfos.length + nars.length > 0 ? "" : "0" };
}

/** The outcome of `evict`. */
export function readEvicted(outcome: Readonly<Record<string, unknown>>): Evicted {
  return {
    narinfos: (outcome["narinfos"] ?? []) as readonly StorePathHash[],
    files: filesOf(outcome["files"]),
    entries: Number(outcome["entries"] ?? 0),
    settled: outcome["settled"] === true,
  };
}

/** The files of an outcome that has some. */
export function filesOf(files: unknown): readonly PendingFile[] {
  return ((files ?? []) as readonly PendingFileColumns[]).map(readPendingFile);
}
