import { within } from "../base/deadline.ts";

/** A request waits this long for a probe: with all upstreams off it is a 404 within a second. */
const REQUEST_WAIT_MS = 800;

/** An old probe may never be answered: a request starts another, at most one within this. */
const REQUEST_PAUSE_MS = 1_000;

/** While an upstream is silent, requests wait less than a quarter of the time. */
const SILENT_PAUSE_MS = 5 * REQUEST_WAIT_MS;

interface Probe {
  readonly startedAtMs: number;
  readonly over: Promise<void>;
}

/** Looks at a down upstream again and again; only requests start a probe beside another one. */
export class Probes implements Disposable {
  readonly #ask: () => Promise<void>;
  readonly #pauseMs: () => number | undefined;
  /** The youngest. */
  #current: Probe | undefined;
  /** The one that requests wait for. */
  #awaited: Probe | undefined;
  #awaitedAtMs = -Infinity;
  #underWay = 0;
  #next: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** `ask` never rejects. `pauseMs` is the time to the next probe; `undefined`: none is needed. */
  constructor(ask: () => Promise<void>, pauseMs: () => number | undefined) {
    this.#ask = ask;
    this.#pauseMs = pauseMs;
  }

  /** After the upstream went down, or came back. Whoever saw it go down has waited for it. */
  changed(): void {
    this.#awaitedAtMs = performance.now();
    this.#reschedule();
  }

  /**
   * For a request that nobody else can answer: joins the probe under way, or starts one. Resolves
   * when it is over, or took too long; mostly at once where `isSilent`.
   */
  async join(isSilent: boolean): Promise<void> {
    if (this.#isOver) return;
    const nowMs = performance.now();
    const isDue = isSilent ? nowMs >= this.#awaitedAtMs + SILENT_PAUSE_MS : this.#underWay === 0;
    const isOld = nowMs >= (this.#current?.startedAtMs ?? this.#awaitedAtMs) + REQUEST_PAUSE_MS;
    if (isDue || isOld) this.#start(isDue);
    if (this.#awaited === undefined) return;
    const leftMs = this.#awaited.startedAtMs + REQUEST_WAIT_MS - nowMs;
    if (leftMs > 0) await within(this.#awaited.over, leftMs);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#next);
  }

  #reschedule(): void {
    clearTimeout(this.#next);
    const pauseMs = this.#isOver ? undefined : this.#pauseMs();
    if (pauseMs === undefined || this.#underWay > 0) return;
    this.#next = setTimeout(() => this.#start(true), pauseMs);
  }

  #start(isAwaited: boolean): void {
    clearTimeout(this.#next);
    this.#underWay++;
    const startedAtMs = performance.now();
    const over = this.#ask().finally(() => {
      this.#underWay--;
      if (this.#awaited === probe) this.#awaited = undefined;
      this.#reschedule();
    });
    const probe = { startedAtMs, over };
    this.#current = probe;
    if (!isAwaited) return;
    this.#awaited = probe;
    this.#awaitedAtMs = startedAtMs;
  }
}
