import { clock } from "../runtime/current.ts";

/** Long enough to be steady, short enough to show a standstill soon. */
const WINDOW_S = 5;

/** A rate of less time would mislead. */
const RATE_FROM_MS = 1_000;

/** The rate of a growing count of bytes in the last seconds. Needs no timer. */
export class RecentRate {
  readonly #nowMs: () => number;
  #begunAtMs: number | undefined;
  #notedAtMs: number | undefined;
  #total = 0;
  /** Bytes of the last seconds. A second's place is its number modulo their count. */
  readonly #slots = new Float64Array(WINDOW_S);
  #newestS = 0;

  constructor(nowMs: () => number = () => clock.nowMs()) {
    this.#nowMs = nowMs;
  }

  /** Notes the present total. The first one begins the time; a lower one begins the count again. */
  note(total: number): void {
    const nowMs = this.#nowMs();
    this.#begunAtMs ??= nowMs;
    this.#notedAtMs = nowMs;
    const slot = this.#slotAt(nowMs);
    this.#slots[slot] = (this.#slots[slot] ?? 0) + Math.max(0, total - this.#total);
    this.#total = total;
  }

  /** `undefined` in the first second. */
  get bytesPerSecond(): number | undefined {
    const nowMs = this.#nowMs();
    if (this.#begunAtMs === undefined || nowMs - this.#begunAtMs < RATE_FROM_MS) return undefined;
    this.#slotAt(nowMs);
    const fromMs = Math.max(this.#begunAtMs, (this.#newestS - WINDOW_S + 1) * 1_000);
    const bytes = this.#slots.reduce((sum, one) => sum + one, 0);
    return Math.round(bytes / ((nowMs - fromMs) / 1_000));
  }

  /** Since the last note; `undefined` before the first. */
  get idleMs(): number | undefined {
    return this.#notedAtMs === undefined ? undefined : this.#nowMs() - this.#notedAtMs;
  }

  /** The place of this second. Empties those of the seconds without a note. */
  #slotAt(nowMs: number): number {
    const second = Math.floor(nowMs / 1_000);
    const passed = Math.min(WINDOW_S, second - this.#newestS);
    for (let back = 0; back < passed; back++) this.#slots[(second - back) % WINDOW_S] = 0;
    if (passed > 0) this.#newestS = second;
    return this.#newestS % WINDOW_S;
  }
}
