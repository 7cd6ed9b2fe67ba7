import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { ColdEntry } from "./space_keeper.ts";

/** A row of the entries that may be evicted. */
export interface ColdColumns {
  /** Absent for a NAR file without a narinfo. */
  readonly hash?: string | null;
  readonly id: number;
  readonly used_at_ms: number;
  readonly nar_id: number;
  readonly name: string;
  readonly kept_bytes: number;
  readonly kept_id: string;
  readonly sharers: number;
}

/** Lists all entries after it. Rows of one millisecond are in the order of their ids. */
export interface Position {
  readonly usedAtMs: number;
  readonly id: number;
}

/** Sorts before every row. */
const START: Position = { usedAtMs: Number.MIN_SAFE_INTEGER, id: Number.MIN_SAFE_INTEGER };

export function readColdEntry(columns: ColdColumns): ColdEntry {
  const { hash } = columns;
  return {
    ...(hash ? { storePathHash: hash as StorePathHash } : {}),
    narName: columns.name as NarName,
    keptBytes: columns.kept_bytes,
    sharers: columns.sharers,
    usedAtMs: columns.used_at_ms,
    cursor: cursorOf(columns),
  };
}

/** `narinfo` or `nar`, the last use and the row's id. */
function cursorOf({ hash, used_at_ms, id }: ColdColumns): string {
  return `${hash ? "narinfo" : "nar"} ${used_at_ms} ${id}`;
}

/** Positions of both lists after an entry. At the same age narinfos come first. */
export function positionsAfter(
  cursor: string | undefined,
): Record<"narinfos" | "looseNars", Position> {
  if (cursor === undefined) return { narinfos: START, looseNars: START };
  const [kind, ...numbers] = cursor.split(" ");
  const [usedAtMs = START.usedAtMs, id = START.id] = numbers.map(Number);
  const after = { usedAtMs, id };
  return kind === "narinfo"
    ? { narinfos: after, looseNars: { usedAtMs, id: START.id } }
    : { narinfos: { usedAtMs, id: Number.MAX_SAFE_INTEGER }, looseNars: after };
}
