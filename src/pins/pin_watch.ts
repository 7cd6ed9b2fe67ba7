import { Failure, messageOf } from "../base/failure.ts";
import type { ClosureSize } from "../closure/closure_sizes.ts";
import type { NarinfoFinder, PinFinder } from "../metadata/metadata_store.ts";
import { nameInNarinfo } from "../nix/narinfo_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { PinNotes } from "./pinned_closures.ts";
import type { PinReads } from "./pins.ts";

/** Further roots are counted, but not listed at once. */
export const WATCHED_ROOTS_MAX = 100;

/** Time after which the roots are read again, without a change of ours. */
const ROOTS_FOR_MS = 30_000;

/** How long a reader waits for roots. A database that hangs takes longer. */
const READ_WITHIN_MS = 1_000;

/** Pause between two counts, and its factor over the last count's time: at most 5 % of the time. */
const COUNT_PAUSE_MIN_MS = 10_000;
const COUNT_PAUSE_FACTOR = 20;

/** How long a reader waits for a count, where a change has made the last one wrong. */
const COUNT_WITHIN_MS = 500;

/** The page's own counts, among those of clients. */
const ITSELF = "the page";

/** A pin root, with its closure's size once counted. */
export interface WatchedRoot {
  readonly root: StorePathHash;
  readonly name: string | undefined;
  readonly pinnedAtMs: number;
  readonly under: readonly string[];
  readonly rolls: boolean;
  readonly size: ClosureSize | undefined;
  readonly notes: PinNotes;
}

export interface WatchedPins {
  readonly count: number;
  /** Pins in their order, the newest first. */
  readonly roots: readonly WatchedRoot[];
  /** Time of the last count. */
  readonly countedAtMs: number | undefined;
}

export interface PinWatchDeps {
  readonly metadata: PinFinder & NarinfoFinder;
  readonly closures: Pick<PinReads, "closures" | "readLost">;
  readonly nowMs: () => number;
  readonly log: Logger;
}

interface Roots {
  readonly count: number;
  readonly newest: readonly Omit<WatchedRoot, "size">[];
}

/**
 * The pins for the status page: current roots, and sizes of the last count. Counting 100,000 paths
 * takes seconds. So it runs in the background, and only while the page is open.
 */
export class PinWatch implements AsyncDisposable {
  readonly #deps: PinWatchDeps;
  #roots: Promise<Roots> | undefined;
  /** The newest roots that were read. */
  #known: Roots | undefined;
  #rootsStaleAtMs = -Infinity;
  #sizes: ReadonlyMap<StorePathHash, ClosureSize> = new Map();
  #countedAtMs: number | undefined;
  #counting: Promise<void> | undefined;
  #countAgainAtMs = -Infinity;
  /** From then on a change may lead to another count: at most half of the time. */
  #restedAtMs = -Infinity;
  #isCountStale = false;
  readonly #stop = new AbortController();

  constructor(deps: PinWatchDeps) {
    this.#deps = deps;
  }

  /** Call this after each pin, unpin and look. */
  changed(): void {
    this.#rootsStaleAtMs = -Infinity;
    this.#countAgainAtMs = Math.min(this.#countAgainAtMs, this.#restedAtMs);
    this.#isCountStale = true;
  }

  /**
   * The newest pins, or those behind the `from` newest ones, which are read for each call. While the
   * database does not answer, the newest pins are those of the last read. `undefined` without one.
   */
  async list(from = 0): Promise<WatchedPins | undefined> {
    const nowMs = this.#deps.nowMs();
    if (this.#roots === undefined || nowMs >= this.#rootsStaleAtMs) {
      this.#rootsStaleAtMs = nowMs + ROOTS_FOR_MS;
      this.#roots = this.#read();
    }
    const isCountStale = this.#isCountStale && this.#countedAtMs !== undefined;
    if (nowMs >= this.#countAgainAtMs && !this.#stop.signal.aborted) {
      this.#counting ??= this.#count();
    }
    const reading = (from === 0 ? this.#roots : this.#read(from)).catch((error) => {
      this.#rootsStaleAtMs = -Infinity;
      this.#deps.log.debug("pins not listed", { error: messageOf(error) });
      return undefined;
    });
    const lost = this.#deps.closures.readLost().catch((error) => {
      this.#deps.log.debug("lost bytes of pins not read", { error: messageOf(error) });
    });
    const counting = isCountStale ? this.#counting : undefined;
    const [readNow] = await Promise.all([
      clock.within(reading, READ_WITHIN_MS),
      clock.within(lost, READ_WITHIN_MS),
      counting && clock.within(counting, COUNT_WITHIN_MS),
    ]);
    const read = readNow ?? (from === 0 ? this.#known : undefined);
    if (read === undefined) return undefined;
    const roots = read.newest.map((root) => ({ ...root, size: this.#sizes.get(root.root) }));
    return { count: read.count, roots, countedAtMs: this.#countedAtMs };
  }

  /** Ends a running count. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#counting;
  }

  async #read(from = 0): Promise<Roots> {
    const pins = await this.#deps.metadata.pins();
    const newest = await Promise.all(
      pins.toReversed().slice(from, from + WATCHED_ROOTS_MAX).map(async (
        { storePathHash: root, pinnedAtMs, names: under = [], rolls = false, ...notes },
      ) => {
        return { root, name: await this.#nameOf(root), pinnedAtMs, under, rolls, notes };
      }),
    );
    const read = { count: pins.length, newest };
    if (from === 0) this.#known = read;
    return read;
  }

  async #nameOf(storePathHash: StorePathHash): Promise<string | undefined> {
    const row = await this.#deps.metadata.findNarinfo(storePathHash);
    return row && nameInNarinfo(row.body);
  }

  /** Never rejects. */
  async #count(): Promise<void> {
    const { closures, nowMs, log } = this.#deps;
    const startedAtMs = nowMs();
    this.#isCountStale = false;
    try {
      const counted = await closures.closures({ client: ITSELF, signal: this.#stop.signal });
      this.#sizes = new Map(
        counted.map(({ root, stored, missing, bytes, ownBytes }) =>
          [root, { stored, missing, bytes, ownBytes }] as const
        ),
      );
      this.#countedAtMs = nowMs();
    } catch (error) {
      const isExpected = error instanceof Failure && error.kind === "busy";
      if (!isExpected && !this.#stop.signal.aborted) {
        log.event("pinned-closures-not-counted", { error: messageOf(error) });
      }
    } finally {
      const tookMs = nowMs() - startedAtMs;
      const pauseMs = Math.max(COUNT_PAUSE_MIN_MS, COUNT_PAUSE_FACTOR * tookMs);
      this.#restedAtMs = nowMs() + tookMs;
      this.#countAgainAtMs = this.#isCountStale ? this.#restedAtMs : nowMs() + pauseMs;
      this.#counting = undefined;
    }
  }
}
