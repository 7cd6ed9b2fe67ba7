import type { StorePathHash } from "../nix/store_path.ts";
import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import {
  ForeignStore,
  type NarinfoReading,
  NoAnswer,
  type NoAnswerReason,
  noAnswerReasonOf,
  type QueuedNarinfoSource,
  type RequestKind,
} from "./upstream.ts";
import {
  FAILURES_MAX,
  HealthMonitor,
  type HealthMonitorDeps,
  looksUp,
  type UpstreamHealth,
  type UpstreamWait,
  waitOf,
} from "./upstream_health.ts";

/** The priority that Nix assumes for a cache that names none. */
const DEFAULT_PRIORITY = 50;

/** The pause before a request for the priority, after a failure or an unknown priority. */
const ASK_AGAIN_MS = 5_000;

/** How long a path that an upstream fails with speaks of the upstream, and not of the path alone. */
const WRONG_FOR_MS = 60_000;

/** Probes of several kinds that begin within this time are one request. */
const SHARED_PROBE_MS = 10;

interface HealthWatch {
  /** Called when the upstream goes down for a kind of request, and when it is up for all again. */
  readonly changed: (isDown: boolean, kind: RequestKind) => void;
  /**
   * Called after each answer, or when none came. `isUp`: for all kinds of requests. `error`: of a
   * request for its priority.
   */
  readonly noted: (isUp: boolean, error?: unknown) => void;
  /** Called with the answer about a path that it failed with before, when no client asked. */
  readonly askedAgain?: (reading: NarinfoReading) => void;
  /** Called when it was quick with a path of its long waits, when no client asked. */
  readonly quick?: () => void;
}

/**
 * An upstream with its health and its priority, beyond single answers. The failures of one kind of
 * request take nothing from another: slow NARs say nothing about narinfos.
 */
export class PooledUpstream implements Disposable {
  readonly source: QueuedNarinfoSource;
  /** How long its answers take. */
  readonly usual = { narinfo: new UsualTime(), document: new UsualTime() };
  readonly #monitors: Readonly<Record<RequestKind, HealthMonitor>>;
  readonly #ended = new AbortController();
  #priority: number | undefined;
  #asking: Promise<unknown> | undefined;
  #askAgainAtMs = -Infinity;
  /** True while its nix-cache-info names another store directory. */
  #isForeign = false;
  #reaching: Promise<boolean> | undefined;
  #probing: { readonly error: Promise<unknown>; readonly atMs: number } | undefined;
  #wasDown = false;
  /** The path of the last narinfo request, if it timed out. */
  #silentAbout: StorePathHash | undefined;
  /** The same, if its answer was an error or of no use. */
  #wrongAbout: WrongAnswer | undefined;
  /** The path of the last wait in vain, while it is slow. */
  #slowAbout: { readonly path: StorePathHash; readonly atMs: number } | undefined;
  readonly #watch: HealthWatch;
  #probeTimer: Timer | undefined;

  constructor(source: QueuedNarinfoSource, watch: HealthWatch) {
    this.source = source;
    this.#watch = watch;
    this.#priority = source.priority;
    const probe = async () => reasonOf(await this.#probe());
    const narinfoProbe = async (signal: AbortSignal) => await probe() ?? this.#askSilent(signal);
    const monitor = (kind: RequestKind, probe: HealthMonitorDeps["probe"]) =>
      new HealthMonitor({ probe, changed: () => this.#changed(kind) });
    this.#monitors = {
      narinfo: monitor("narinfo", narinfoProbe),
      nar: monitor("nar", probe),
      document: monitor("document", probe),
    };
  }

  healthOf(kind: RequestKind): UpstreamHealth {
    return this.#monitors[kind].health;
  }

  /** True for an upstream that gets no requests of clients of this kind. */
  isDown(kind: RequestKind): boolean {
    return this.#isForeign || this.healthOf(kind).state === "down";
  }

  /** True for an upstream that displays show as up for this kind. */
  looksUp(kind: RequestKind): boolean {
    return !this.#isForeign && looksUp(this.healthOf(kind));
  }

  /** How long a request of this kind may wait for it. */
  waitOf(kind: RequestKind): UpstreamWait {
    return this.#isForeign ? "none" : waitOf(this.healthOf(kind));
  }

  /** True if the upstream is up for this kind, and has capacity for prefetches. */
  isSpare(kind: "narinfo" | "nar"): boolean {
    const { state } = this.healthOf(kind);
    // A prefetched NAR follows a narinfo, and may be the first.
    const isUp = state === "up" || kind === "nar" && state === "unknown";
    return !this.#isForeign && isUp && !(this.source.isOverloaded ?? false);
  }

  /** The lower is preferred. `undefined` during the first request for it. */
  get priority(): number | undefined {
    return this.#priority;
  }

  /**
   * Requests `priority` if needed. Resolves when it is known, or cannot be known now; `undefined`
   * where that is so already.
   */
  known(): Promise<unknown> | undefined {
    if (this.source.priority !== undefined) return undefined;
    if (clock.nowMs() > this.#askAgainAtMs) this.#ask();
    return this.#priority === undefined ? this.#asking : undefined;
  }

  /**
   * See `NarinfoSource.reach`. Requests share a dial while it is in flight. They share a successful
   * one until the upstream answers, or fails to.
   */
  reached(): Promise<boolean> {
    this.#reaching ??= this.source.reach(this.#ended.signal).then((isReached) => {
      if (!isReached) this.#reaching = undefined;
      return isReached;
    });
    return this.#reaching;
  }

  /** Notes an answer to a request of this kind, or the reason why none came. */
  note(kind: RequestKind, reason: NoAnswerReason | undefined): void {
    this.#note([kind], { reason, failures: 1 });
  }

  /** The same of the answer to a narinfo request for this path. */
  noteNarinfo(storePathHash: StorePathHash, reading: NarinfoReading): void {
    const reason = noAnswerReasonOf(reading);
    this.#silentAbout = reason === "timeout" ? storePathHash : undefined;
    const wrong = { path: storePathHash, atMs: clock.nowMs() };
    this.#wrongAbout = isWrong(reading) ? wrong : undefined;
    this.note("narinfo", reason);
  }

  /** Notes that a client waited for it in vain, and it is slow. */
  noteSlow(path: StorePathHash): void {
    this.#slowAbout = { path, atMs: clock.nowMs() };
    this.#probeLater();
  }

  /** Probes an upstream that is down for this kind, once for all requests. Resolves in 800 ms. */
  async probed(kind: RequestKind): Promise<void> {
    await this.#monitors[kind].probed();
  }

  /**
   * Asks before any client does. A timeout makes the upstream down. A refused connection does not:
   * it costs no time, and the upstream may start a moment later. Resolves to the error, if any.
   */
  async probeAtStart(): Promise<unknown> {
    const error = await this.#ask();
    if (this.#ended.signal.aborted) return undefined;
    if (reasonOf(error) === "timeout") {
      this.#note(KINDS, { reason: "timeout", failures: FAILURES_MAX });
    }
    return error;
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    for (const kind of KINDS) this.#monitors[kind][Symbol.dispose]();
    this.#probeTimer?.cancel();
  }

  #note(kinds: readonly RequestKind[], { reason, failures, error }: NotedAnswer): void {
    this.#reaching = undefined;
    if (this.#ended.signal.aborted) return;
    for (const kind of kinds) this.#monitors[kind].note(reason, failures);
    this.#noted(error);
  }

  /** The request for the priority was answered, be it with nonsense. */
  #described(error: unknown): void {
    this.#reaching = undefined;
    if (this.#ended.signal.aborted) return;
    this.#answeredOther();
    this.#noted(error);
  }

  /** Its nix-cache-info came: it is up for each kind, but for narinfos that it is silent about. */
  #answeredOther(): void {
    for (const kind of KINDS) {
      if (kind === "narinfo" && this.#silentAbout !== undefined) continue;
      this.#monitors[kind].note(undefined, 0);
    }
  }

  #noted(error: unknown): void {
    this.#watch.noted(this.#looksUp, error);
    if (this.#isDoubtful) this.#probeLater();
  }

  #probeLater(): void {
    if (this.#ended.signal.aborted) return;
    this.#probeTimer ??= clock.after(ASK_AGAIN_MS, () => {
      this.#probeTimer = undefined;
      void this.#askAgain();
    });
  }

  /** Without requests only this finds out that it is back. A down one has its own probes. */
  async #askAgain(): Promise<void> {
    if (this.#slowAbout !== undefined) await this.#askSlow(this.#slowAbout);
    if (!this.#isDoubtful) return;
    const isDescribed = await this.#ask() === undefined;
    if (this.#wrongAbout !== undefined && !this.isDown("narinfo")) {
      await this.#askWrong(this.#wrongAbout, isDescribed);
    }
    if (this.#silentAbout === undefined || this.isDown("narinfo")) return;
    const reason = await this.#askSilent(this.#ended.signal);
    this.#note(["narinfo"], { reason, failures: 0 });
  }

  /** Asks again for the narinfo that was an error or of no use. `isDescribed`: the rest is well. */
  async #askWrong(wrong: WrongAnswer, isDescribed: boolean): Promise<void> {
    const { signal } = this.#ended;
    const reading = await this.source.narinfo(wrong.path, signal, "prefetch");
    if (signal.aborted || this.#wrongAbout !== wrong) return;
    if (reading.kind === "queue-timeout") return this.#probeLater();
    this.#watch.askedAgain?.(reading);
    const isUntrusted = reading.kind === "failed" && reading.reason === "untrusted";
    const isOld = clock.nowMs() - wrong.atMs >= WRONG_FOR_MS && isDescribed;
    if (!isWrong(reading) || isOld && !isUntrusted) this.#wrongAbout = undefined;
    this.#note(["narinfo"], { reason: noAnswerReasonOf(reading), failures: 0 });
  }

  /** Asks again for the narinfo that a client waited for in vain. */
  async #askSlow({ path, atMs }: { path: StorePathHash; atMs: number }): Promise<void> {
    const { signal } = this.#ended;
    const askedAtMs = clock.nowMs();
    const reading = await this.source.narinfo(path, signal, "prefetch");
    if (signal.aborted) return;
    const isQuick = reading.kind !== "queue-timeout" &&
      noAnswerReasonOf(reading) === undefined && clock.nowMs() - askedAtMs < PATIENCE_MAX_MS;
    // A client may wait in vain meanwhile.
    if (!isQuick || this.#slowAbout?.atMs !== atMs) return this.#probeLater();
    this.#slowAbout = undefined;
    this.#watch.quick?.();
  }

  get #isDoubtful(): boolean {
    return this.#isFailing || this.#isForeign || this.#wrongAbout !== undefined;
  }

  get #isFailing(): boolean {
    return KINDS.some((kind) => this.healthOf(kind).state === "failing");
  }

  get #looksUp(): boolean {
    return KINDS.every((kind) => this.looksUp(kind));
  }

  #changed(kind: RequestKind): void {
    const isDown = KINDS.some((one) => this.healthOf(one).state === "down");
    if (isDown === this.#wasDown) return;
    this.#wasDown = isDown;
    this.#watch.changed(isDown, kind);
    // A probe alone may have found it up.
    this.#watch.noted(!isDown && this.#looksUp);
  }

  /**
   * Asks again for the narinfo that it was silent about, if any: its nix-cache-info says nothing
   * about narinfos. Resolves to the reason when no answer came.
   */
  async #askSilent(signal: AbortSignal): Promise<NoAnswerReason | undefined> {
    if (this.#silentAbout === undefined) return undefined;
    const reading = await this.source.narinfo(this.#silentAbout, signal);
    const reason = reading.kind === "queue-timeout" ? "timeout" : noAnswerReasonOf(reading);
    if (reason === undefined && !signal.aborted) this.#silentAbout = undefined;
    return reason;
  }

  /** Resolves to the error, if any. An answer is told to each kind. */
  async #probe(): Promise<unknown> {
    const nowMs = clock.nowMs();
    const running = this.#probing;
    if (running !== undefined && nowMs - running.atMs < SHARED_PROBE_MS) return await running.error;
    const error = this.#describe(this.#ended.signal);
    this.#probing = { error, atMs: nowMs };
    const failure = await error;
    // A later one may find what this one did not.
    if (this.#probing?.error === error) this.#probing = undefined;
    const isAnswered = reasonOf(failure) === undefined;
    if (isAnswered && !this.#ended.signal.aborted) {
      this.#answeredOther();
    }
    return failure;
  }

  /** Requests the priority, once at a time. Resolves to the error, if any. */
  #ask(): Promise<unknown> {
    this.#askAgainAtMs = clock.nowMs() + ASK_AGAIN_MS;
    this.#asking ??= this.#describe(this.#ended.signal)
      .then((error) => {
        const reason = reasonOf(error);
        if (reason === undefined) this.#described(error);
        // Silence here takes nothing from NARs and documents.
        else this.#note(["narinfo"], { reason, failures: 0, error });
        return error;
      })
      .finally(() => this.#asking = undefined);
    return this.#asking;
  }

  async #describe(signal: AbortSignal): Promise<unknown> {
    try {
      const announced = await this.source.describe(signal);
      this.#priority = this.source.priority ?? announced ?? DEFAULT_PRIORITY;
      this.#askAgainAtMs = Infinity;
      this.#isForeign = false;
      return undefined;
    } catch (error) {
      if (error instanceof ForeignStore) this.#isForeign = true;
      this.#priority ??= DEFAULT_PRIORITY;
      return error;
    }
  }
}

/** True for an answer that is an error or of no use. */
function isWrong(reading: NarinfoReading): boolean {
  return reading.kind === "failed" && noAnswerReasonOf(reading) === undefined;
}

const KINDS: readonly RequestKind[] = ["narinfo", "nar", "document"];

interface WrongAnswer {
  readonly path: StorePathHash;
  readonly atMs: number;
}

interface NotedAnswer {
  /** `undefined`: an answer came. */
  readonly reason: NoAnswerReason | undefined;
  /** The failed requests that it stands for. */
  readonly failures: number;
  /** Of a request for the priority. */
  readonly error?: unknown;
}

/** The reason why no answer came. After any other error the upstream has answered. */
function reasonOf(error: unknown): NoAnswerReason | undefined {
  return error instanceof NoAnswer ? error.reason : undefined;
}

/** The newest transfers that count. */
const TRANSFERS_MAX = 20;

/** Fewer bytes say more about latency than about the rate. */
const BYTES_MIN = 256 * 1024;

interface Transfer {
  bytes: number;
  ms: number;
}

/** The rates at which upstreams send NAR files: the mean of the newest transfers. */
export class NarRates {
  readonly #transfers = new Map<string, Transfer[]>();

  /** Call it at the first byte of a transfer, and its result with the bytes that came since. */
  begin(upstream: string): (bytes: number) => void {
    const startedAtMs = clock.nowMs();
    let transfer: Transfer | undefined;
    let bytes = 0;
    return (more) => {
      bytes += more;
      if (bytes < BYTES_MIN) return;
      transfer ??= this.#added(upstream);
      transfer.bytes = bytes;
      transfer.ms = clock.nowMs() - startedAtMs;
    };
  }

  /** Bytes in a second of one transfer; `undefined` before the first of some size. */
  of(upstream: string): number | undefined {
    const all = this.#transfers.get(upstream) ?? [];
    const sum = (of: keyof Transfer) => all.reduce((whole, one) => whole + one[of], 0);
    return all.length === 0 ? undefined : Math.round(sum("bytes") * 1_000 / Math.max(1, sum("ms")));
  }

  #added(upstream: string): Transfer {
    const all = this.#transfers.get(upstream) ?? [];
    if (all.length >= TRANSFERS_MAX) all.shift();
    const transfer = { bytes: 0, ms: 0 };
    all.push(transfer);
    this.#transfers.set(upstream, all);
    return transfer;
  }
}

/** Once another upstream has found a path, a better one is waited for no longer. */
export const PATIENCE_MAX_MS = 300;

/** The usual times for which a better upstream is waited for. */
const PATIENCE_TIMES = 2;

/** The newest answers that count. */
const ANSWERS_MAX = 20;

/** The part of the answers that come within the usual time. */
const USUAL_PART = 0.9;

/** A shorter time says more about this thread than about the upstream. */
const USUAL_MIN_MS = 25;

/** A wait for a better upstream, after another one has found the path. */
export interface RivalWait {
  readonly ms: number;
  /** True where it has not answered all the same. */
  readonly isLate: boolean;
}

/** The usual time of an upstream's answers of one kind: nine of ten of the newest are as quick. */
class UsualTime {
  readonly #newestMs: number[] = [];

  note(ms: number): void {
    if (this.#newestMs.length >= ANSWERS_MAX) this.#newestMs.shift();
    this.#newestMs.push(ms);
  }

  /** How long it is waited for once another upstream has found the path; no answer yet: longest. */
  get patienceMs(): number {
    const sorted = this.#newestMs.toSorted((a, b) => a - b);
    const usualMs = sorted[Math.ceil(USUAL_PART * sorted.length) - 1] ?? Infinity;
    return Math.min(PATIENCE_MAX_MS, PATIENCE_TIMES * Math.max(USUAL_MIN_MS, usualMs));
  }
}
