import { pause } from "../base/pause.ts";
import type { Evicted, PendingFile, SpaceKeeper } from "../metadata/space_keeper.ts";
import type { Accounts } from "./accounts.ts";
import type { ActiveReads } from "./active_reads.ts";
import type { RunEnd } from "./futility.ts";
import type { Sweeper } from "./sweeper.ts";

/** Entries in one transaction: some 2 ms in which no request is answered. */
const ENTRIES_MAX = 32;

/** No pause between batches is longer: a batch that took long has waited for the disk. */
const PAUSE_MAX_MS = 10;

/** How old the uses may become, within a run, by which the coldest entries are chosen. */
const USES_AGE_MAX_MS = 1_000;

export interface EvictorDeps {
  readonly metadata: Pick<SpaceKeeper, "evict">;
  readonly sweeper: Pick<Sweeper, "sweep" | "sweepOwn">;
  readonly accounts: Accounts;
  readonly reads: Pick<ActiveReads, "names">;
  /** Writes down the uses so far. */
  readonly flushUses: () => Promise<void>;
  /** Names this process in the marks of what it evicts. */
  readonly owner: string;
  readonly nowMs: () => number;
}

/** What an eviction run has come to so far. */
export interface RunFigures {
  readonly freedBytes: number;
  readonly evictedEntries: number;
  readonly evictedFiles: number;
}

export interface Run {
  /** Bytes on disk to get down to; asked for before each batch. */
  readonly targetBytes: () => number;
  /** Told after each batch. */
  readonly progress: (figures: RunFigures) => void;
  /** False ends it after its batch. */
  readonly isWanted: () => boolean;
}

/** Nothing yet. */
export const NO_FIGURES: RunFigures = { freedBytes: 0, evictedEntries: 0, evictedFiles: 0 };

/**
 * Evicts in small batches, so that requests go on between them.
 *
 * The order of eviction: the narinfo used longest ago goes first, and its NAR file with it unless
 * another narinfo leads to that file; kept files without a narinfo stand in the same order by
 * their own use. `coldNarinfos` and `coldLooseNars` (`metadata/sqlite/space_statements.ts`) list
 * them, `metadata/sqlite/eviction.ts` marks them. Left out is what a pin protects (see
 * `pins/pins.ts`), and what is read or downloaded. Nothing is evicted while that protection is not
 * settled.
 */
export class Evictor {
  readonly #deps: EvictorDeps;
  #stopped = false;

  constructor(deps: EvictorDeps) {
    this.#deps = deps;
  }

  /** Evicts until no more than the target is on disk, or nothing that is left may go. */
  async run({ targetBytes, progress, isWanted }: Run): Promise<RunEnd> {
    let figures = NO_FIGURES;
    const { accounts, flushUses, nowMs } = this.#deps;
    const { budget } = accounts;
    // What a former run could not remove.
    await this.#deps.sweeper.sweepOwn();
    await accounts.observe();
    for (let flushedAtMs = -Infinity;;) {
      const excessBytes = budget.usedBytes - targetBytes();
      if (excessBytes <= 0) return "reached";
      if (this.#stopped || !isWanted()) return "cut short";
      if (nowMs() - flushedAtMs > USES_AGE_MAX_MS) {
        await flushUses();
        flushedAtMs = nowMs();
      }
      const startedAtMs = nowMs();
      const { evicted, gone } = await this.#batch(excessBytes);
      if (!evicted.settled) {
        await accounts.protect();
        continue;
      }
      if (evicted.entries === 0) return "exhausted";
      figures = {
        freedBytes: figures.freedBytes + sizeOf(gone),
        evictedEntries: figures.evictedEntries + evicted.entries,
        evictedFiles: figures.evictedFiles + gone.length,
      };
      progress(figures);
      // What is kept in the pause took the room that this run made: it must not go for it.
      if (budget.usedBytes <= targetBytes()) return "reached";
      // A disk that gives nothing back would cost every row its file.
      if (evicted.files.length > 0 && gone.length === 0) return "cut short";
      // Requests come first: of a long run they have half the time.
      const tookMs = Math.max(1, nowMs() - startedAtMs);
      await pause(evicted.entries < ENTRIES_MAX ? 0 : Math.min(PAUSE_MAX_MS, tookMs));
    }
  }

  /** Ends a run after its batch. */
  stop(): void {
    this.#stopped = true;
  }

  async #batch(
    bytesMin: number,
  ): Promise<{ readonly evicted: Evicted; readonly gone: readonly PendingFile[] }> {
    const { metadata, sweeper, reads, accounts, owner } = this.#deps;
    const order = { bytesMin, entriesMax: ENTRIES_MAX, spared: reads.names(), owner };
    const evicted = await metadata.evict(order);
    const gone = await sweeper.sweep(evicted.files);
    await accounts.observe();
    return { evicted, gone };
  }
}

function sizeOf(files: readonly PendingFile[]): number {
  return files.reduce((bytes, { fileSize }) => bytes + fileSize, 0);
}
