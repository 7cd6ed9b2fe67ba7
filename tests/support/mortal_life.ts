import { setImmediate } from "node:timers";

/** What a process gets from everything that it calls once it is dead. */
export class Dead extends Error {}

/** The life of a process within the test's own: it ends between two calls, at a chosen one. */
export class MortalLife {
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly #die: () => void;
  #isOver = false;
  #stepsLeft = Infinity;

  /** `last` is done at the moment of death, before anything else can happen. */
  constructor(last: () => void) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    this.#die = () => {
      last();
      resolve();
    };
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** It ends at the `steps`th step from now. */
  endAfter(steps: number): void {
    this.#stepsLeft = steps;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#die();
  }

  /** Throws when it is over. */
  check(): void {
    if (this.#isOver) throw new Dead("the process is dead");
  }

  step(): void {
    this.check();
    if (--this.#stepsLeft > 0) return;
    this.end();
    this.check();
  }

  /**
   * The port as the process has it: each call is a step before and a step after, so that it may
   * die with the call not made, or made and not known.
   */
  bind<Port extends object>(port: Port): Port {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return async (...args: unknown[]) => {
          this.step();
          const result = await member.apply(target, args);
          this.step();
          return result;
        };
      },
    });
  }
}

/** Resolves after so many turns of the event loop, in which others may run. */
export async function turns(count = 1): Promise<void> {
  for (let at = 0; at < count; at++) {
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
}
