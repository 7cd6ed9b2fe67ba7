import { clock } from "../runtime/current.ts";
import { Notifier } from "./notifier.ts";

/** A memory limit in bytes that many shares draw on. */
export class MemoryAllowance {
  #leftBytes: number;
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
        for (;;) {
          if (take(bytes)) return true;
          const leftMs = untilMs - clock.nowMs();
          if (leftMs <= 0) return false;
          await this.#givenBack.notified(leftMs);
        }
      },
    };
  }
}

export interface MemoryShare extends Disposable {
  /** False, with nothing taken, if the limit does not allow it. */
  take(bytes: number): boolean;
  /** The same, but waits up to `limitMs` for others to give bytes back. */
  takeWithin(bytes: number, limitMs: number): Promise<boolean>;
  /** Keeps the bytes beyond the share's own scope, for their next owner. */
  hold(): Disposable;
}
