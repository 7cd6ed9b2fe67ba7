import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { NamedPath } from "../name_finder.ts";
import type { Statements } from "./statements.ts";

/** Ids of one step: it takes far less than a slice, and some milliseconds for rows on the disk. */
const STEP_IDS = 256;

/** The statements that search names. Only the texts have names: an index would cost each miss. */
export const NAMES_SQL = {
  lastNarinfo: "SELECT max(path_id) AS id FROM narinfo",
  // The whole text first: to cut out the name costs more. A name begins 55 characters behind the
  // start of its line, and has at most 211.
  named: `SELECT p.hash, named.name FROM (
      SELECT path_id, substr(rest, 1, instr(rest, char(10)) - 1) AS name FROM (
        SELECT path_id,
          substr(body, instr(char(10) || body, char(10) || 'StorePath: ') + 55, 212) AS rest
        FROM narinfo
        WHERE path_id > ?1 - ${STEP_IDS} AND path_id <= ?1 AND body LIKE ?2 ESCAPE '\\')) named
    JOIN path p ON p.id = named.path_id
    WHERE named.name LIKE ?2 ESCAPE '\\' ORDER BY named.path_id DESC`,
} as const;

/** Searches in steps, from the newest id to the oldest, in time slices. */
export async function findNamed(
  statement: (name: keyof typeof NAMES_SQL) => Statements[keyof Statements],
  { text, countMax, signal }: {
    readonly text: string;
    readonly countMax: number;
    readonly signal: AbortSignal | undefined;
  },
): Promise<readonly NamedPath[]> {
  const pattern = `%${text.replace(/[%_\\]/g, "\\$&")}%`;
  signal?.throwIfAborted();
  const slice = clock.slice(signal);
  const found: NamedPath[] = [];
  let lastId = Number(statement("lastNarinfo").get()?.["id"] ?? 0);
  for (; lastId > 0 && found.length < countMax; lastId -= STEP_IDS) {
    for (const { hash, name } of statement("named").all(lastId, pattern)) {
      found.push({ storePathHash: hash as StorePathHash, name: String(name) });
    }
    if (slice.isOver) await slice.yield();
  }
  return found.slice(0, countMax);
}
