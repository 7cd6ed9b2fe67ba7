import type { NarName } from "../../nix/nar_name.ts";
import { type StoredName, storedName } from "../../nix/stored_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import {
  type ColdEntry,
  EMPTIES_SHARE,
  type Evicted,
  EVICTED_PATHS_MAX,
  type EvictionOrder,
  type ExpiryOrder,
  type PendingFile,
} from "../space_keeper.ts";
import { type ColdColumns, type Position, positionsAfter, readColdEntry } from "../cold_entries.ts";
import type { Protection } from "./protection.ts";
import { removeNarinfo } from "./reference_slices.ts";
import type { Statements } from "./statements.ts";

interface EvictionRow extends ColdEntry {
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

const NONE: ReadonlySet<NarName> = new Set();

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
  ): readonly EvictionRow[] {
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
        removeNarinfo(this.#statements, entry.id);
        this.#statements.addLooseNar.run(entry.usedAtMs, narId);
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
    if (order.atMs !== undefined) this.#note(narinfos, order.atMs);
    return { narinfos, files, entries, settled: true };
  }

  #note(narinfos: readonly StorePathHash[], atMs: number): void {
    for (const storePathHash of narinfos) this.#statements.noteEvicted.run(storePathHash, atMs);
    this.#statements.forgetEvicted.run(EVICTED_PATHS_MAX);
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
      removeNarinfo(this.#statements, Number(row["id"]));
      this.#statements.addLooseNar.run(Number(row["used_at_ms"]), Number(row["nar_id"]));
    }
    return empties.map(({ hash }) => hash as StorePathHash);
  }

  #list(
    statement: Statements[keyof Statements],
    { usedAtMs, id }: Position,
    { names, countMax }: { readonly names: string; readonly countMax: number },
  ): readonly EvictionRow[] {
    return statement.all(usedAtMs, id, names, countMax).map((row) => {
      const columns = row as unknown as ColdColumns;
      return {
        ...readColdEntry(columns),
        at: storedName(columns.name as NarName, columns.kept_id),
        id: columns.id,
        narId: columns.nar_id,
      };
    });
  }

  /** False where another narinfo names the file, or none is kept. */
  #mark(narId: number, owner: string): boolean {
    if (Number(this.#statements.markUnnamedNar.run(owner, narId).changes) === 0) return false;
    this.#statements.unkeepNar.run(narId);
    return true;
  }
}
