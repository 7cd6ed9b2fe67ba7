import { clock } from "../runtime/current.ts";

/** Long enough to be steady, short enough to show a standstill soon. */
const WINDOW_S = 5;

/**
 * The rate of a growing count of bytes in the last whole seconds since its begin: a part of a second
 * would show a piece too few or too many. Needs no timer.
 */
export class RecentRate {
  readonly #nowMs: () => number;
  #begunAtMs: number | undefined;
  #notedAtMs: number | undefined;
  #total = 0;
  /**
   * Bytes of the last seconds and of the running one. A second's place is its number modulo their
   * count.
   */
  readonly #slots = new Float64Array(WINDOW_S + 1);
  #newestS = 0;

  constructor(nowMs: () => number = () => clock.nowMs()) {
    this.#nowMs = nowMs;
  }

  /** Notes the present total. The first one begins the time; a lower one begins the count again. */
  note(total: number): void {
    const nowMs = this.#nowMs();
    this.#begunAtMs ??= nowMs;
    this.#notedAtMs = nowMs;
    const place = this.#slotAt(nowMs - this.#begunAtMs);
    this.#slots[place] = (this.#slots[place] ?? 0) + Math.max(0, total - this.#total);
    this.#total = total;
  }

  /** `undefined` in the first second. */
  get bytesPerSecond(): number | undefined {
    const elapsedMs = this.#nowMs() - (this.#begunAtMs ?? Infinity);
    if (elapsedMs < 1_000) return undefined;
    if ((this.idleMs ?? 0) >= WINDOW_S * 1_000) return 0;
    this.#slotAt(elapsedMs);
    const count = Math.min(WINDOW_S, this.#newestS);
    let bytes = 0;
    for (let back = 1; back <= count; back++) {
      bytes += this.#slots[(this.#newestS - back) % this.#slots.length] ?? 0;
    }
    return Math.round(bytes / count);
  }

  /** Since the last note; `undefined` before the first. */
  get idleMs(): number | undefined {
    return this.#notedAtMs === undefined ? undefined : this.#nowMs() - this.#notedAtMs;
  }

  /** The place of this second. Empties those of the seconds without a note. */
  #slotAt(elapsedMs: number): number {
    const second = Math.floor(elapsedMs / 1_000);
    const passed = Math.min(this.#slots.length, second - this.#newestS);
    for (let back = 0; back < passed; back++) {
      this.#slots[(second - back) % this.#slots.length] = 0;
    }
    if (passed > 0) this.#newestS = second;
    return this.#newestS % this.#slots.length;
  }
}
