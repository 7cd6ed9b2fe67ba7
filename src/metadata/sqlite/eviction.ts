import type { NarName } from "../../nix/nar_name.ts";
import { type StoredName, storedName } from "../../nix/stored_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type {
  ColdEntry,
  Evicted,
  EvictionOrder,
  ExpiryOrder,
  PendingFile,
} from "../space_keeper.ts";
import type { Protection } from "./protection.ts";
import type { Statements } from "./statements.ts";

interface ColdColumns {
  readonly hash?: string;
  readonly id: number;
  readonly used_at_ms: number;
  readonly nar_id: number;
  readonly name: string;
  readonly kept_bytes: number;
  readonly kept_id: string;
  readonly sharers: number;
}

interface Candidate extends ColdEntry {
  /** The path's id, or that of the NAR file without a narinfo. */
  readonly id: number;
  /** The entry's NAR file. */
  readonly at: StoredName;
  readonly narId: number;
}

interface ColdestOptions {
  /** Lists entries after this cursor. */
  readonly after?: string | undefined;
  /** NAR files to leave out, with their narinfos. */
  readonly spared?: ReadonlySet<NarName>;
}

/** A share of a transaction's entries: it stops the thread longer by the same share. */
const EMPTIES_SHARE = 1 / 4;

const NONE: ReadonlySet<NarName> = new Set();

/** Lists all entries after it. Rows of one millisecond are in the order of their ids. */
interface Position {
  readonly usedAtMs: number;
  readonly id: number;
}

/** Sorts before every row. */
const START: Position = { usedAtMs: Number.MIN_SAFE_INTEGER, id: Number.MIN_SAFE_INTEGER };

/** Chooses the entries to evict, and removes their rows. */
export class Eviction {
  readonly #statements: Statements;
  readonly #protection: Protection;

  constructor(statements: Statements, protection: Protection) {
    this.#statements = statements;
    this.#protection = protection;
  }

  /** Narinfos and loose NAR files merged by age; at the same age narinfos come first. */
  coldest(
    countMax: number,
    { after, spared = NONE }: ColdestOptions = {},
  ): readonly Candidate[] {
    const { coldNarinfos, coldLooseNars } = this.#statements;
    // One parameter for any number of names.
    const names = JSON.stringify([...spared]);
    const page = { countMax, names };
    const from = positionsAfter(after);
    const narinfos = this.#list(coldNarinfos, from.narinfos, page);
    const loose = this.#list(coldLooseNars, from.looseNars, page);
    if (loose.length === 0) return narinfos;
    return [...narinfos, ...loose].sort((a, b) => a.usedAtMs - b.usedAtMs).slice(0, countMax);
  }

  /** Call it within a transaction. */
  evict(order: EvictionOrder): Evicted {
    const { bytesMin, entriesMax, spared, owner, usedBeforeMs = Infinity } = order;
    const narinfos: StorePathHash[] = [];
    const files: PendingFile[] = [];
    let [bytes, entries, youngestMs] = [0, 0, -Infinity];
    if (!this.#protection.settled) return { narinfos, files, entries, settled: false };
    for (const entry of this.coldest(entriesMax, { spared })) {
      if (bytes >= bytesMin || entry.usedAtMs >= usedBeforeMs) break;
      const { storePathHash, at, narId, keptBytes } = entry;
      entries++;
      youngestMs = entry.usedAtMs;
      if (storePathHash !== undefined) {
        this.#removeNarinfo(entry.id);
        this.#statements.loosenNar.run(entry.usedAtMs, narId);
        narinfos.push(storePathHash);
      }
      if (!this.#mark(narId, owner)) continue;
      files.push({ at, owner, fileSize: keptBytes });
      bytes += keptBytes;
    }
    if (entries > 0) {
      const countMax = Math.ceil(entriesMax * EMPTIES_SHARE);
      narinfos.push(...this.#evictEmpties(youngestMs, countMax, spared));
    }
    return { narinfos, files, entries, settled: true };
  }

  /** Marks expired uploads. Call it within a transaction. */
  expire({ atMs, spared, owner }: ExpiryOrder): readonly PendingFile[] {
    const files: PendingFile[] = [];
    for (const { id, name, kept_id, kept_size } of this.#statements.expiredNars.all(atMs)) {
      const narName = String(name) as NarName;
      if (spared.has(narName) || !this.#mark(Number(id), owner)) continue;
      this.#statements.stageNar.run(0, Number(id));
      const at = storedName(narName, String(kept_id));
      files.push({ at, owner, fileSize: Number(kept_size) });
    }
    return files;
  }

  /** Removes equally cold narinfos without a NAR file, which frees no bytes. */
  #evictEmpties(
    sinceMs: number,
    countMax: number,
    spared: ReadonlySet<NarName>,
  ): readonly StorePathHash[] {
    const names = JSON.stringify([...spared]);
    const empties = this.#statements.coldEmpties.all(sinceMs, names, countMax);
    for (const row of empties) {
      this.#removeNarinfo(Number(row["id"]));
      this.#statements.loosenNar.run(Number(row["used_at_ms"]), Number(row["nar_id"]));
    }
    return empties.map(({ hash }) => hash as StorePathHash);
  }

  #list(
    statement: Statements[keyof Statements],
    { usedAtMs, id }: Position,
    { names, countMax }: { readonly names: string; readonly countMax: number },
  ): readonly Candidate[] {
    return statement.all(usedAtMs, id, names, countMax).map((row) => {
      const columns = row as unknown as ColdColumns;
      return {
        ...(columns.hash === undefined ? {} : { storePathHash: columns.hash as StorePathHash }),
        narName: columns.name as NarName,
        at: storedName(columns.name as NarName, columns.kept_id),
        keptBytes: columns.kept_bytes,
        sharers: columns.sharers,
        usedAtMs: columns.used_at_ms,
        cursor: cursorOf(columns),
        id: columns.id,
        narId: columns.nar_id,
      };
    });
  }

  #removeNarinfo(pathId: number): void {
    this.#statements.removeReferences.run(pathId);
    this.#statements.removeUse.run(pathId);
    this.#statements.removeNarinfo.run(pathId);
  }

  /** False where another narinfo names the file, or none is kept. */
  #mark(narId: number, owner: string): boolean {
    if (Number(this.#statements.markUnnamedNar.run(owner, narId).changes) === 0) return false;
    this.#statements.unkeepNar.run(narId);
    return true;
  }
}

/** `narinfo` or `nar`, the last use and the row's id. */
function cursorOf({ hash, used_at_ms, id }: ColdColumns): string {
  return `${hash === undefined ? "nar" : "narinfo"} ${used_at_ms} ${id}`;
}

/** Where both lists continue after an entry. At the same age narinfos come first. */
function positionsAfter(cursor: string | undefined): Record<"narinfos" | "looseNars", Position> {
  if (cursor === undefined) return { narinfos: START, looseNars: START };
  const [kind, ...numbers] = cursor.split(" ");
  const [usedAtMs = START.usedAtMs, id = START.id] = numbers.map(Number);
  const after = { usedAtMs, id };
  return kind === "narinfo"
    ? { narinfos: after, looseNars: { usedAtMs, id: START.id } }
    : { narinfos: { usedAtMs, id: Number.MAX_SAFE_INTEGER }, looseNars: after };
}
