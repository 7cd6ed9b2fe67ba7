import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { Statements } from "./statements.ts";

/** The statements that read one path each: on SQLite that costs microseconds. */
export const GRAPH_SQL = {
  graphRow: `SELECT p.hash, n.name, n.kept_size, (
      SELECT group_concat(d.hash, ' ') FROM reference r JOIN path d ON d.id = r.dst
      WHERE r.src = p.id
    ) AS refs
    FROM path p JOIN narinfo i ON i.path_id = p.id JOIN nar n ON n.id = i.nar_id
    WHERE p.hash = ?`,
  narinfoBody: `SELECT p.hash, i.body FROM path p JOIN narinfo i ON i.path_id = p.id
    WHERE p.hash = ?`,
} as const;

/** One row for each stored path, read in time slices. */
export async function readEach<Columns>(
  statement: () => Statements[keyof Statements],
  storePathHashes: readonly StorePathHash[],
  signal: AbortSignal | undefined,
): Promise<readonly Columns[]> {
  signal?.throwIfAborted();
  const slice = clock.slice(signal);
  const rows: Columns[] = [];
  for (const storePathHash of storePathHashes) {
    const row = statement().get(storePathHash);
    if (row !== undefined) rows.push(row as unknown as Columns);
    if (slice.isOver) await slice.yield();
  }
  return rows;
}
