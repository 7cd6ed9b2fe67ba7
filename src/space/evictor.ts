import type { WorkLeases } from "../locks/work_leases.ts";
import type { Evicted, PendingFile, SpaceKeeper } from "../metadata/space_keeper.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { Accounts } from "./accounts.ts";
import type { ActiveReads } from "./active_reads.ts";
import type { RunEnd } from "./eviction_runs.ts";
import type { Sweeper, SweptFile } from "./sweeper.ts";

/** Entries in one transaction: it stops the thread for some 2 ms. */
const ENTRIES_MAX = 32;

/** The age at which a run writes the uses again, so that it evicts the coldest. */
const TOUCHES_AGE_MAX_MS = 1_000;

export interface EvictorDeps {
  readonly metadata: Pick<SpaceKeeper, "evict">;
  readonly sweeper: Pick<Sweeper, "sweep" | "sweepOwn" | "isStoreUnavailable">;
  readonly accounts: Accounts;
  readonly reads: Pick<ActiveReads, "names">;
  /** Writes the noted uses to the database. */
  readonly flushTouches: () => Promise<void>;
  /** This process, in the marks of evicted files. */
  readonly owner: string;
  readonly nowMs: () => number;
}

/** The result of an eviction run so far. */
export interface RunFigures {
  readonly freedBytes: number;
  readonly evictedEntries: number;
  readonly evictedFiles: number;
}

export interface Run {
  /** The target for the bytes on disk; read before each batch. */
  readonly targetBytes: () => number;
  /** Entries used at this time or later stay; default: none does. */
  readonly usedBeforeMs?: number;
  /** True for a run that an operator requested: its outcome goes to the operator. */
  readonly isRequested?: true;
  /** Called after each batch. */
  readonly progress: (figures: RunFigures) => void;
  /** False ends the run after its batch. */
  readonly isWanted: () => boolean;
}

export const NO_FIGURES: RunFigures = { freedBytes: 0, evictedEntries: 0, evictedFiles: 0 };

/**
 * Evicts in small batches, so that requests go on between them.
 *
 * The order of eviction:
 * 1. The entry with the oldest use goes first. An entry is a narinfo whose NAR file is kept, or a
 *    kept NAR file that no narinfo names. At the same age narinfos go first.
 * 2. A NAR file goes with the last narinfo that names it. The use of a NAR is a use of all its
 *    narinfos.
 * 3. A narinfo that larder prefetched has the time 0 for its use, until a client requests it.
 * 4. A batch of entries takes some narinfos without a kept file along, a quarter of `ENTRIES_MAX`
 *    at most. None of them has a younger use than the batch's last entry.
 *
 * Eviction spares four kinds of entries.
 * - Entries that pins protect (see `pins/pins.ts`). Until all of them are known, nothing goes.
 * - NAR files that this member reads or downloads, with their narinfos.
 * - Staged NARs. `cache/upload/stage_nar.ts` removes them by their time.
 * - Entries that were used at `usedBeforeMs` or later, if the run sets it.
 *
 * SQLite: `coldNarinfos`, `coldLooseNars` and `coldEmpties` in
 * `metadata/sqlite/space.ts` list the entries, and its `Eviction` marks
 * them. PostgreSQL: `coldest` and `remove_empties` list them, and `evict` marks them, all in
 * `metadata/schema/0015_initial.postgres.sql`. It passes over entries that another transaction holds.
 */
export class Evictor {
  readonly #deps: EvictorDeps;
  readonly #roundsMax: number;
  #stopped = false;

  /** `roundsMax`: the most transactions before one sweep. */
  constructor(deps: EvictorDeps, roundsMax = 1) {
    this.#deps = deps;
    this.#roundsMax = roundsMax;
  }

  /** Evicts until the target is reached, or nothing else may go. */
  async run({ targetBytes, progress, isWanted, usedBeforeMs }: Run): Promise<RunEnd> {
    let figures = NO_FIGURES;
    const { accounts, flushTouches, nowMs } = this.#deps;
    const { budget } = accounts;
    // A former run may have left files that it could not remove.
    await this.#deps.sweeper.sweepOwn();
    await accounts.observe();
    for (let flushedAtMs = -Infinity;;) {
      const excessBytes = budget.usedBytes - targetBytes();
      if (excessBytes <= 0) return "reached";
      // An unavailable store frees no bytes, whatever goes: the entries stay for its return.
      if (this.#deps.sweeper.isStoreUnavailable) return "storage away";
      if (this.#stopped || !isWanted()) return "cut short";
      if (nowMs() - flushedAtMs > TOUCHES_AGE_MAX_MS) {
        await flushTouches();
        flushedAtMs = nowMs();
      }
      const startedAtMs = nowMs();
      const { evicted, gone } = await this.#batch(excessBytes, usedBeforeMs);
      if (!evicted.settled) {
        await accounts.protect();
        continue;
      }
      if (evicted.entries === 0) return "exhausted";
      const freed = gone.filter(({ wasHere }) => wasHere);
      figures = {
        freedBytes: figures.freedBytes + sizeOf(freed),
        evictedEntries: figures.evictedEntries + evicted.entries,
        evictedFiles: figures.evictedFiles + freed.length,
      };
      progress(figures);
      // A file kept during the pause uses the freed space, and must not be evicted for it.
      if (budget.usedBytes <= targetBytes()) return "reached";
      // Going on would remove every row, while the disk gives no space back.
      if (evicted.files.length > 0 && gone.length === 0) {
        return this.#deps.sweeper.isStoreUnavailable ? "storage away" : "cut short";
      }
      if (evicted.entries < ENTRIES_MAX) await clock.pause(0);
      else await clock.pauseBehindBatch(nowMs() - startedAtMs);
    }
  }

  /** Ends the current run after its batch. */
  stop(): void {
    this.#stopped = true;
  }

  async #batch(
    bytesMin: number,
    usedBeforeMs = Infinity,
  ): Promise<{ readonly evicted: Evicted; readonly gone: readonly SweptFile[] }> {
    const { sweeper, accounts } = this.#deps;
    const evicted = await this.#mark(bytesMin, usedBeforeMs);
    const gone = await sweeper.sweep(evicted.files);
    await accounts.observe();
    return { evicted, gone };
  }

  /** Marks for at least `bytesMin`, in one transaction or a few small ones. */
  async #mark(bytesMin: number, usedBeforeMs: number): Promise<Evicted> {
    const { metadata, reads, owner, nowMs } = this.#deps;
    const marked: PendingFile[] = [];
    const narinfos: StorePathHash[] = [];
    for (let [rounds, entries] = [1, 0];; rounds++) {
      const evicted = await metadata.evict({
        bytesMin: bytesMin - sizeOf(marked),
        entriesMax: ENTRIES_MAX,
        spared: reads.names(),
        owner,
        usedBeforeMs,
        atMs: nowMs(),
      });
      marked.push(...evicted.files);
      narinfos.push(...evicted.narinfos);
      entries += evicted.entries;
      if (evicted.entries === 0 || sizeOf(marked) >= bytesMin || rounds >= this.#roundsMax) {
        const settled = evicted.settled || entries > 0;
        return { narinfos, files: marked, entries, settled };
      }
      await clock.pause(0);
    }
  }
}

function sizeOf(files: readonly PendingFile[]): number {
  return files.reduce((bytes, { fileSize }) => bytes + fileSize, 0);
}

interface LeasedEvictorDeps {
  readonly evictor: Pick<Evictor, "run" | "stop">;
  readonly accounts: Pick<Accounts, "observe">;
  readonly leases: Pick<WorkLeases, "eviction">;
}

/** Evicts unless another member does: its run makes room for all. */
export class LeasedEvictor implements Pick<Evictor, "run" | "stop"> {
  readonly #deps: LeasedEvictorDeps;

  constructor(deps: LeasedEvictorDeps) {
    this.#deps = deps;
  }

  async run(run: Run): Promise<RunEnd> {
    const { evictor, accounts, leases } = this.#deps;
    await using lease = await leases.eviction();
    if (lease.kind === "ours") return await evictor.run(run);
    await accounts.observe();
    return "elsewhere";
  }

  stop(): void {
    this.#deps.evictor.stop();
  }
}
