import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { Change, ChangeOf } from "../metadata_store.ts";
import type { Statements } from "./statements.ts";

/** References that one transaction writes: it stops the thread for some 2 ms. */
export const REFERENCES_AT_ONCE = 200;

/** References that go with their narinfo. The others follow in slices. */
const DROPPED_AT_ONCE = 32;

/** Another process changes the references of the same path no more often. */
const TRIES_MAX = 5;

/** The statements about the references of a path. */
export const REFERENCE_SQL = {
  addReference: "INSERT INTO reference (src, dst) VALUES (?, ?)",
  // Adds nothing for an unknown path.
  addKnownReference: "INSERT INTO reference (src, dst) SELECT ?, id FROM path WHERE hash = ?",
  addReferenceOnce: "INSERT INTO reference (src, dst) VALUES (?, ?) ON CONFLICT DO NOTHING",
  hasReference: `SELECT 1 FROM reference
    WHERE src = ? AND dst = (SELECT id FROM path WHERE hash = ?)`,
  countReferences: "SELECT count(*) AS count FROM reference WHERE src = ?",
  // A limit of -1 is none.
  dropReferences: `DELETE FROM reference
    WHERE src = ?1 AND dst IN (SELECT dst FROM reference WHERE src = ?1 LIMIT ?2)`,
  hasMoreReferences: "SELECT 1 FROM reference WHERE src = ? LIMIT 1 OFFSET ?",
  markRest: "INSERT INTO reference_rest (path_id) VALUES (?) ON CONFLICT DO NOTHING",
  unmarkRest: "DELETE FROM reference_rest WHERE path_id = ?",
  rests: "SELECT path_id FROM reference_rest ORDER BY path_id",
} as const;

/** The references of a large narinfo are not all there, and no others: write them again. */
export class Unprepared extends Error {
  override readonly name = "Unprepared";
}

/** Removes the references of a path whose narinfo goes; many leave a rest for `drain`. */
function dropReferences(statements: Statements, pathId: number): void {
  const { changes } = statements.dropReferences.run(pathId, DROPPED_AT_ONCE);
  if (Number(changes) === DROPPED_AT_ONCE) statements.markRest.run(pathId);
}

/** Removes the rows of a path's narinfo, but not its NAR. */
export function removeNarinfo(statements: Statements, pathId: number): void {
  dropReferences(statements, pathId);
  statements.removeTouch.run(pathId);
  statements.removeNarinfo.run(pathId);
}

export interface ReferenceSlicesDeps {
  readonly statements: Statements;
  /** Runs a small write in a transaction. `mustWait`: as long as another process has the lock. */
  readonly within: <Value>(work: () => Value, mustWait: boolean) => Promise<Value>;
  /** Removes a narinfo that the change may replace; false where the change is outdated. */
  readonly makeWay: (change: ChangeOf<"put-narinfo">) => boolean;
}

type PutNarinfo = ChangeOf<"put-narinfo">;

/**
 * Writes and removes the references of narinfos with many of them in slices, so that no write stops
 * the thread for long. References come before their narinfo, whose row makes them visible at once.
 * They go after it. A crash leaves rows that nothing reads, until the next write or sweep.
 */
export class ReferenceSlices {
  readonly #deps: ReferenceSlicesDeps;
  /** Paths whose references are being written. */
  readonly #growing = new Set<number>();
  /** The last list of each path with such references. */
  readonly #busy = new Map<StorePathHash, Promise<void>>();
  #draining: Promise<void> | undefined;
  #isOver = false;

  constructor(deps: ReferenceSlicesDeps) {
    this.#deps = deps;
  }

  /** Calls `write` once the references of all large narinfos are there. */
  async around(
    changes: readonly Change[],
    mustWait: boolean,
    write: () => Promise<void>,
  ): Promise<void> {
    const hashes = hashesOf(changes);
    const large = changes.filter((change) => change.kind === "put-narinfo")
      .filter((change) => this.#isLarge(change));
    if (large.length === 0 && !hashes.some((hash) => this.#busy.has(hash))) return await write();
    const before = hashes.flatMap((hash) => this.#busy.get(hash) ?? []);
    const mine = Promise.allSettled(before).then(() => this.#write(large, mustWait, write));
    const ended = mine.catch(() => undefined);
    for (const hash of hashes) this.#busy.set(hash, ended);
    try {
      await mine;
    } finally {
      for (const hash of hashes) if (this.#busy.get(hash) === ended) this.#busy.delete(hash);
    }
  }

  /** Removes, in the background, what narinfos with many references have left. Never rejects. */
  drain(): Promise<void> {
    return this.#draining ??= this.#drain().catch(() => undefined)
      .finally(() => this.#draining = undefined);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled([this.#draining, ...this.#busy.values()]);
  }

  #isLarge({ row, references }: PutNarinfo): boolean {
    if (references.length > REFERENCES_AT_ONCE) return true;
    const pathId = this.#pathId(row.storePathHash);
    return pathId !== undefined && this.#hasMany(pathId);
  }

  async #write(
    large: readonly PutNarinfo[],
    mustWait: boolean,
    write: () => Promise<void>,
  ): Promise<void> {
    for (let left = TRIES_MAX;; left--) {
      const growing: number[] = [];
      try {
        for (const change of large) {
          const pathId = await this.#prepare(change, mustWait);
          if (pathId !== undefined) growing.push(pathId);
        }
        return await write();
      } catch (error) {
        if (!(error instanceof Unprepared) || left === 1) throw error;
      } finally {
        for (const pathId of growing) this.#growing.delete(pathId);
        // Of a refused list.
        if (growing.length > 0) void this.drain();
      }
    }
  }

  /** The path whose references are there now, before its narinfo. */
  async #prepare(change: PutNarinfo, mustWait: boolean): Promise<number | undefined> {
    const { statements, within, makeWay } = this.#deps;
    const { row: { storePathHash }, references } = change;
    if (await this.#isSame(change)) return undefined;
    const pathId = await within(() => {
      if (!makeWay(change)) return undefined;
      const id = this.#pathId(storePathHash) ?? addPath(statements, storePathHash);
      statements.markRest.run(id);
      this.#growing.add(id);
      return id;
    }, mustWait);
    if (pathId === undefined) return undefined;
    try {
      await this.#drop(pathId, mustWait);
      if (references.length <= REFERENCES_AT_ONCE) return pathId;
      for (let at = 0; at < references.length; at += REFERENCES_AT_ONCE) {
        const slice = references.slice(at, at + REFERENCES_AT_ONCE);
        await this.#paced(() => this.#add(pathId, slice), mustWait);
      }
      return pathId;
    } catch (error) {
      this.#growing.delete(pathId);
      throw error;
    }
  }

  /** True where the stored narinfo has the same references, as most that come again. */
  async #isSame({ row, references }: PutNarinfo): Promise<boolean> {
    const { statements } = this.#deps;
    const pathId = this.#pathId(row.storePathHash);
    if (pathId === undefined || statements.narIdOfPath.get(pathId) === undefined) return false;
    const count = statements.countReferences.get(pathId)?.["count"];
    if (Number(count) !== references.length) return false;
    const slice = clock.slice();
    for (const reference of references) {
      if (statements.hasReference.get(pathId, reference) === undefined) return false;
      if (slice.isOver) await slice.yield();
    }
    return true;
  }

  async #drop(pathId: number, mustWait: boolean): Promise<void> {
    const { statements } = this.#deps;
    for (;;) {
      const gone = await this.#paced(
        () => Number(statements.dropReferences.run(pathId, REFERENCES_AT_ONCE).changes),
        mustWait,
      );
      if (gone < REFERENCES_AT_ONCE) return;
    }
  }

  #add(pathId: number, references: readonly StorePathHash[]): void {
    const { statements } = this.#deps;
    for (const reference of references) {
      const id = this.#pathId(reference) ?? addPath(statements, reference);
      statements.addReferenceOnce.run(pathId, id);
    }
  }

  async #drain(): Promise<void> {
    const { statements, within } = this.#deps;
    for (const row of statements.rests.all()) {
      const pathId = Number(row["path_id"]);
      if (this.#growing.has(pathId)) continue;
      const isStored = () => statements.narIdOfPath.get(pathId) !== undefined;
      for (let isLeft = true; isLeft && !this.#isOver;) {
        isLeft = await this.#paced(() => {
          if (isStored() || this.#growing.has(pathId)) return false;
          const { changes } = statements.dropReferences.run(pathId, REFERENCES_AT_ONCE);
          return Number(changes) === REFERENCES_AT_ONCE;
        }, false);
      }
      if (this.#isOver) return;
      if (!this.#growing.has(pathId)) await within(() => statements.unmarkRest.run(pathId), false);
    }
  }

  /** Requests have as much time between two slices as one took. */
  async #paced<Value>(work: () => Value, mustWait: boolean): Promise<Value> {
    const startedAtMs = clock.nowMs();
    const value = await this.#deps.within(work, mustWait);
    await clock.pauseBehindBatch(clock.nowMs() - startedAtMs);
    return value;
  }

  #hasMany(pathId: number): boolean {
    const { hasMoreReferences } = this.#deps.statements;
    return hasMoreReferences.get(pathId, REFERENCES_AT_ONCE) !== undefined;
  }

  #pathId(storePathHash: StorePathHash): number | undefined {
    return this.#deps.statements.pathId.get(storePathHash)?.["id"] as number | undefined;
  }
}

function addPath(statements: Statements, storePathHash: StorePathHash): number {
  return Number(statements.addPath.run(storePathHash).lastInsertRowid);
}

/** The paths whose narinfos a list changes. */
function hashesOf(changes: readonly Change[]): readonly StorePathHash[] {
  return changes.flatMap((change) => {
    if (change.kind === "put-narinfo") return change.row.storePathHash;
    return change.kind === "remove-narinfo" ? change.storePathHash : [];
  });
}
