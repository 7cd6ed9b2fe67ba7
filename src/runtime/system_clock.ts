import { clearImmediate, setImmediate } from "node:timers";
import { Clock, type Timer } from "./clock.ts";

/** The clock of this machine, and the timers of this thread. */
export class SystemClock extends Clock {
  override nowMs(): number {
    return performance.now();
  }

  override wallMs(): number {
    return Date.now();
  }

  override after(ms: number, due: () => void, holdsProcess = true): Timer {
    const timer = new SystemTimer(due);
    timer.start(setTimeout(() => timer.fire(), ms), holdsProcess);
    return timer;
  }

  override every(ms: number, beat: () => void, holdsProcess = true): Timer {
    const timer = new SystemTimer(beat);
    timer.start(setInterval(() => timer.fire(), ms), holdsProcess);
    return timer;
  }

  override soon(run: () => void): Timer {
    const immediate = setImmediate(run);
    const cancel = () => clearImmediate(immediate);
    return { cancel, [Symbol.dispose]: cancel };
  }
}

type Handle = ReturnType<typeof setTimeout>;

class SystemTimer implements Timer {
  readonly #due: () => void;
  #handle: Handle | undefined;
  #isCancelled = false;

  constructor(due: () => void) {
    this.#due = due;
  }

  start(handle: Handle, holdsProcess: boolean): void {
    this.#handle = handle;
    if (!holdsProcess) Deno.unrefTimer(handle as unknown as number);
  }

  // A timer that is due in the turn in which it is cleared fires all the same (Deno 2.6.8).
  fire(): void {
    if (!this.#isCancelled) this.#due();
  }

  cancel(): void {
    this.#isCancelled = true;
    clearTimeout(this.#handle);
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}
