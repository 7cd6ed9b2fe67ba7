import type { NarName } from "../../nix/nar_name.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";

/** An upstream that sends fewer bytes in a second makes clients wait. */
export const SLOW_BYTES_PER_SECOND = 1024 * 1024;

const TICK_MS = 1_000;

/** A second in which less of it went to bodies says nothing: its NARs were over soon. */
const BUSY_MIN_MS = TICK_MS / 2;

/** Slow seconds after which an upstream is slow, each within `OVER_AFTER_MS` of the one before. */
const SLOW_TICKS = 3;

/** An upstream is slow no longer so long after its last slow second. */
const OVER_AFTER_MS = 5_000;

/** Fewer bytes say more about latency than about the rate. */
const BYTES_MIN = 256 * 1024;

/** How fast the bytes of a NAR file come from an upstream. */
export interface NarPace {
  readonly nar: NarName;
  readonly upstream: string;
  /** Of the last seconds, as the list of downloads has it; of all its bytes at the end. */
  readonly bytesPerSecond: number;
  /** Since its first byte. */
  readonly ms: number;
}

export interface NarPacesDeps {
  /** Called for each NAR file of some size: at its end, and each second of a slow upstream. */
  readonly noted: (pace: NarPace) => void;
  /** Called each second in which an upstream is slow: the longest wait. */
  readonly slow: (pace: NarPace) => void;
  /** Called once when no client waits for a slow upstream any more. */
  readonly over: (upstream: string) => void;
}

/** What the pace of a file is read from. */
export interface PacedNar {
  readonly nar: NarName;
  readonly upstream: string;
  readonly target: {
    readonly received: number;
    readonly isWanted: boolean;
    readonly bytesPerSecond: number | undefined;
  };
}

/**
 * Finds the upstreams whose NARs are so slow that clients wait. Many files share a line, so the
 * bytes of all are judged together, second by second.
 */
export class NarPaces implements Disposable {
  readonly #deps: NarPacesDeps;
  readonly #upstreams = new Map<string, UpstreamPace>();

  constructor(deps: NarPacesDeps) {
    this.#deps = deps;
  }

  /** The first bytes of a file come from the upstream. Dispose of it when they have ended. */
  begin(given: PacedNar): Disposable {
    let pace = this.#upstreams.get(given.upstream);
    if (pace === undefined) {
      pace = new UpstreamPace(given.upstream, this.#deps);
      this.#upstreams.set(given.upstream, pace);
    }
    return pace.begin(given);
  }

  [Symbol.dispose](): void {
    for (const pace of this.#upstreams.values()) pace[Symbol.dispose]();
  }
}

interface PacedFile extends PacedNar {
  readonly startedAtMs: number;
  readonly startedAt: number;
  /** The bytes of it that are counted. */
  counted: number;
}

/** The files that come from one upstream. */
class UpstreamPace implements Disposable {
  readonly #upstream: string;
  readonly #deps: NarPacesDeps;
  readonly #files = new Set<PacedFile>();
  /** Of this second: its bytes, the time in which files came, and the longest wait that ended. */
  #bytes = 0;
  #busyMs = 0;
  #ended: NarPace | undefined;
  #busySinceMs = 0;
  #slowTicks = 0;
  #tick: Timer | undefined;
  #over: Timer | undefined;

  constructor(upstream: string, deps: NarPacesDeps) {
    this.#upstream = upstream;
    this.#deps = deps;
  }

  begin(given: PacedNar): Disposable {
    const startedAtMs = clock.nowMs();
    const { received } = given.target;
    const file = { ...given, startedAtMs, startedAt: received, counted: received };
    if (this.#files.size === 0) this.#busySinceMs = startedAtMs;
    this.#files.add(file);
    this.#tick ??= clock.after(TICK_MS, () => this.#judge(), false);
    return { [Symbol.dispose]: () => this.#end(file) };
  }

  [Symbol.dispose](): void {
    this.#tick?.cancel();
    this.#over?.cancel();
  }

  #end(file: PacedFile): void {
    if (!this.#files.delete(file)) return;
    this.#count(file);
    if (this.#files.size === 0) this.#busyMs += clock.nowMs() - this.#busySinceMs;
    const pace = paceOf(file);
    if (file.target.isWanted && pace.ms > (this.#ended?.ms ?? 0)) this.#ended = pace;
    if (file.counted - file.startedAt >= BYTES_MIN) this.#deps.noted(pace);
  }

  #count(file: PacedFile): void {
    const { received } = file.target;
    this.#bytes += Math.max(0, received - file.counted);
    file.counted = received;
  }

  /** Judges the second that is over. */
  #judge(): void {
    this.#tick = undefined;
    const nowMs = clock.nowMs();
    for (const file of this.#files) this.#count(file);
    const isBusy = this.#files.size > 0;
    const busyMs = this.#busyMs + (isBusy ? nowMs - this.#busySinceMs : 0);
    const waiting = [...this.#files].filter(({ target }) => target.isWanted).map((file) => {
      const pace = paceOf(file);
      return { ...pace, bytesPerSecond: file.target.bytesPerSecond ?? pace.bytesPerSecond };
    });
    const waits = this.#ended === undefined ? waiting : [...waiting, this.#ended];
    const [longest] = waits.toSorted((a, b) => b.ms - a.ms);
    const rate = this.#bytes * 1_000 / Math.max(1, busyMs);
    // Without a byte it stands still, and the idle timeout judges that.
    const isSlow = busyMs >= BUSY_MIN_MS && this.#bytes > 0 && rate < SLOW_BYTES_PER_SECOND;
    const isWorthATick = isBusy || this.#ended !== undefined;
    this.#bytes = this.#busyMs = 0;
    this.#ended = undefined;
    this.#busySinceMs = nowMs;
    if (isSlow && longest !== undefined) this.#isSlow(longest, waiting);
    if (isWorthATick) this.#tick ??= clock.after(TICK_MS, () => this.#judge(), false);
  }

  #isSlow(longest: NarPace, waiting: readonly NarPace[]): void {
    this.#over?.cancel();
    this.#over = clock.after(OVER_AFTER_MS, () => this.#isOver(), false);
    this.#slowTicks++;
    if (this.#slowTicks < SLOW_TICKS) return;
    for (const pace of waiting) this.#deps.noted(pace);
    this.#deps.slow(longest);
  }

  #isOver(): void {
    const wasSlow = this.#slowTicks >= SLOW_TICKS;
    this.#slowTicks = 0;
    if (wasSlow) this.#deps.over(this.#upstream);
  }
}

function paceOf({ nar, upstream, target, startedAtMs, startedAt }: PacedFile): NarPace {
  const ms = clock.nowMs() - startedAtMs;
  const bytes = Math.max(0, target.received - startedAt);
  return { nar, upstream, bytesPerSecond: Math.round(bytes * 1_000 / Math.max(1, ms)), ms };
}
