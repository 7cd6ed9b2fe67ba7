import { within } from "../base/deadline.ts";

/** A request waits this long for a probe: with all upstreams off it is a 404 within a second. */
const REQUEST_WAIT_MS = 800;

interface Probe {
  readonly startedAtMs: number;
  readonly over: Promise<void>;
}

/** Looks at a down upstream again and again, one probe at a time. */
export class Probes implements Disposable {
  readonly #ask: () => Promise<void>;
  readonly #pauseMs: () => number | undefined;
  #current: Probe | undefined;
  #next: number | undefined;
  #isOver = false;

  /** `ask` never rejects. `pauseMs` is the time to the next probe; `undefined`: none is needed. */
  constructor(ask: () => Promise<void>, pauseMs: () => number | undefined) {
    this.#ask = ask;
    this.#pauseMs = pauseMs;
  }

  /** After the upstream went down, or came back. */
  reschedule(): void {
    clearTimeout(this.#next);
    const pauseMs = this.#isOver ? undefined : this.#pauseMs();
    if (pauseMs === undefined || this.#current !== undefined) return;
    this.#next = setTimeout(() => this.#start(), pauseMs);
  }

  /**
   * For a request that nobody else can answer: joins the probe under way, or starts one if it
   * `mayStart`. Resolves when it is over, or took too long.
   */
  async join(mayStart: boolean): Promise<void> {
    const probe = this.#current ?? (mayStart && !this.#isOver ? this.#start() : undefined);
    if (probe === undefined) return;
    const leftMs = probe.startedAtMs + REQUEST_WAIT_MS - performance.now();
    if (leftMs > 0) await within(probe.over, leftMs);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#next);
  }

  #start(): Probe {
    clearTimeout(this.#next);
    const over = this.#ask().finally(() => {
      this.#current = undefined;
      this.reschedule();
    });
    return this.#current = { startedAtMs: performance.now(), over };
  }
}
