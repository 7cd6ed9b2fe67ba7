import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import { NAR_GRACE_MS, PATHS_PER_ROW, type RowSweepOrder, type SweptRows } from "../row_sweeper.ts";
import type { Protection } from "./protection.ts";
import { removeNarinfo } from "./reference_slices.ts";
import type { Statements } from "./statements.ts";

/** The position in front of the first path. */
export const FIRST_PATH = "0";

/** The longest batch: rows from the disk take their time. */
const SLICE_MS = 2;

/** The statements that find and remove unused rows. Eviction finds narinfos the same way. */
export const ROW_SWEEP_SQL = {
  unusedNars: `SELECT l.nar_id AS id, n.name FROM loose_nar l JOIN nar n ON n.id = l.nar_id
    WHERE l.kept = 0 AND l.used_at_ms <= ?
      AND NOT EXISTS (SELECT 1 FROM pending_file WHERE nar_id = l.nar_id)
      AND n.name NOT IN (SELECT value FROM json_each(?))
    ORDER BY l.used_at_ms, l.nar_id LIMIT ?`,
  removeSources: "DELETE FROM nar_source WHERE nar_id = ?",
  removeNar: "DELETE FROM nar WHERE id = ?",
  removeUnusedNar: `DELETE FROM nar WHERE name = ? AND kept_size IS NULL
    AND NOT EXISTS (SELECT 1 FROM narinfo WHERE nar_id = nar.id)
    AND NOT EXISTS (SELECT 1 FROM pending_file WHERE nar_id = nar.id)
    RETURNING id`,
  lastOfPaths: "SELECT max(id) AS id FROM (SELECT id FROM path WHERE id > ? ORDER BY id LIMIT ?)",
  // A path has a use row as long as a narinfo, and use rows take far fewer pages.
  removeUnnamedPaths: `DELETE FROM path WHERE id > ? AND id <= ?
    AND NOT EXISTS (SELECT 1 FROM narinfo_use WHERE path_id = path.id)
    AND NOT EXISTS (SELECT 1 FROM reference WHERE dst = path.id)
    AND NOT EXISTS (SELECT 1 FROM reference_rest WHERE path_id = path.id)
    AND NOT EXISTS (SELECT 1 FROM protected_path WHERE path_id = path.id)`,
} as const;

/**
 * Removes unused rows: first narinfos, then NARs, then the paths left over. Call it within a
 * transaction.
 */
export function sweepUnused(
  statements: Statements,
  { settled }: Protection,
  order: RowSweepOrder,
): SweptRows {
  const { rowsMax, after } = order;
  const nothing = { narinfos: [], nars: [], paths: 0, settled: true };
  if (!settled) return { ...nothing, next: after ?? "", settled: false };
  // Only the walk over the paths needs a position: swept narinfos and NARs are not found again.
  if (after) {
    return { ...nothing, ...sweepPaths(statements, Number(after), rowsMax * PATHS_PER_ROW) };
  }
  const untilMs = clock.nowMs() + SLICE_MS;
  const narinfos = sweepNarinfos(statements, order, untilMs);
  if (narinfos.length > 0) return { ...nothing, narinfos, next: "" };
  const nars = sweepNars(statements, order, untilMs);
  return { ...nothing, nars, next: nars.length > 0 ? "" : FIRST_PATH };
}

function sweepNarinfos(
  statements: Statements,
  { unusedSinceMs, rowsMax, spared }: RowSweepOrder,
  untilMs: number,
): readonly StorePathHash[] {
  const swept: StorePathHash[] = [];
  for (
    const row of statements.coldEmpties.all(unusedSinceMs, JSON.stringify([...spared]), rowsMax)
  ) {
    removeNarinfo(statements, Number(row["id"]));
    statements.addLooseNar.run(unusedSinceMs + NAR_GRACE_MS, Number(row["nar_id"]));
    swept.push(row["hash"] as StorePathHash);
    if (clock.nowMs() > untilMs) break;
  }
  return swept;
}

function sweepNars(
  { unusedNars, removeSources, removeLooseNar, removeNar }: Statements,
  { unusedSinceMs, rowsMax, spared }: RowSweepOrder,
  untilMs: number,
): readonly NarName[] {
  const swept: NarName[] = [];
  for (const row of unusedNars.all(unusedSinceMs, JSON.stringify([...spared]), rowsMax)) {
    const narId = Number(row["id"]);
    removeSources.run(narId);
    removeLooseNar.run(narId);
    removeNar.run(narId);
    swept.push(row["name"] as NarName);
    if (clock.nowMs() > untilMs) break;
  }
  return swept;
}

function sweepPaths(
  { lastOfPaths, removeUnnamedPaths }: Statements,
  afterId: number,
  countMax: number,
): Pick<SweptRows, "paths" | "next"> {
  const lastId = lastOfPaths.get(afterId, countMax)?.["id"] ?? null;
  if (lastId === null) return { paths: 0 };
  const { changes } = removeUnnamedPaths.run(afterId, lastId);
  return { paths: Number(changes), next: String(lastId) };
}
