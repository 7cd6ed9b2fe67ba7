import { Notifier } from "./notifier.ts";

/** Memory that many may take bytes of, up to a limit. */
export class MemoryAllowance {
  #leftBytes: number;
  readonly #givenBack = new Notifier();

  constructor(bytesMax: number) {
    this.#leftBytes = bytesMax;
  }

  /** Nothing taken yet. Everything is given back when its scope and every hold have ended. */
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
        const untilMs = performance.now() + limitMs;
        for (;;) {
          if (take(bytes)) return true;
          const leftMs = untilMs - performance.now();
          if (leftMs <= 0) return false;
          await this.#givenBack.notified(leftMs);
        }
      },
    };
  }
}

export interface MemoryShare extends Disposable {
  /** False, and nothing taken, where the limit would be passed. */
  take(bytes: number): boolean;
  /** The same, as soon as others have given back enough; false after `limitMs`. */
  takeWithin(bytes: number, limitMs: number): Promise<boolean>;
  /** Keeps what was taken beyond the share's own scope, for somebody else who has the bytes. */
  hold(): Disposable;
}
