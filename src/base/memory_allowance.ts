import { clock } from "../runtime/current.ts";
import { Notifier } from "./notifier.ts";

/** A share that waits has another one given up so often. */
const GIVE_UP_EVERY_MS = 1_000;

/** Nobody gives up a share that grows for less time: an honest one is done by then. */
const GROWN_MS_MIN = 5_000;

/** A share that is not complete yet. */
interface Growing {
  readonly sinceMs: number;
  giveUp(): void;
}

/** A memory limit in bytes that many shares draw on. */
export class MemoryAllowance {
  #leftBytes: number;
  /** The one that grows longest first. */
  readonly #growing = new Set<Growing>();
  readonly #givenBack = new Notifier();

  constructor(bytesMax: number) {
    this.#leftBytes = bytesMax;
  }

  /** An empty share. Its bytes return when its scope and every hold have ended. */
  share(): MemoryShare {
    let heldBytes = 0;
    let holds = 0;
    const hold = (): Disposable => {
      holds++;
      let isOver = false;
      return {
        [Symbol.dispose]: () => {
          if (isOver) return;
          isOver = true;
          if (--holds > 0) return;
          this.#leftBytes += heldBytes;
          heldBytes = 0;
          this.#givenBack.notify();
        },
      };
    };
    const take = (bytes: number): boolean => {
      if (bytes > this.#leftBytes) return false;
      this.#leftBytes -= bytes;
      heldBytes += bytes;
      return true;
    };
    return {
      ...hold(),
      take,
      hold,
      takeWithin: async (bytes, limitMs) => {
        const untilMs = clock.nowMs() + limitMs;
        for (let giveUpAtMs = clock.nowMs() + GIVE_UP_EVERY_MS;;) {
          if (take(bytes)) return true;
          const nowMs = clock.nowMs();
          if (nowMs >= untilMs) return false;
          if (nowMs >= giveUpAtMs) {
            giveUpAtMs = nowMs + GIVE_UP_EVERY_MS;
            this.#giveUpOldest(nowMs);
            continue;
          }
          await this.#givenBack.notified(Math.min(untilMs, giveUpAtMs) - nowMs);
        }
      },
      growing: (giveUp) => {
        const growing = { sinceMs: clock.nowMs(), giveUp };
        this.#growing.add(growing);
        return { [Symbol.dispose]: () => void this.#growing.delete(growing) };
      },
    };
  }

  #giveUpOldest(nowMs: number): void {
    const [oldest] = this.#growing;
    if (oldest === undefined || nowMs - oldest.sinceMs < GROWN_MS_MIN) return;
    this.#growing.delete(oldest);
    oldest.giveUp();
  }
}

export interface MemoryShare extends Disposable {
  /** False, with nothing taken, if the limit does not allow it. */
  take(bytes: number): boolean;
  /** The same, but waits up to `limitMs` for others to give bytes back. */
  takeWithin(bytes: number, limitMs: number): Promise<boolean>;
  /** Keeps the bytes beyond the share's own scope, for their next owner. */
  hold(): Disposable;
  /**
   * Says that its bytes come from a client, who may stop. Where others wait for memory, `giveUp` is
   * called for the share that grows longest.
   */
  growing(giveUp: () => void): Disposable;
}
