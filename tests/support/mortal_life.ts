import { setImmediate } from "node:timers";

/** The error of every call that a process makes once it is dead. */
export class Dead extends Error {}

/** The life of a process within the test's own: it ends or sleeps between two calls. */
export class MortalLife {
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly #die: () => void;
  #isOver = false;
  #stepsLeft = Infinity;
  #stepsToSleep = Infinity;
  #sleep: PromiseWithResolvers<void> | undefined;
  readonly #asleep = Promise.withResolvers<void>();

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

  /** It sleeps from the `steps`th step on, as a process that is stopped, until it is woken. */
  sleepAfter(steps: number): void {
    this.#stepsToSleep = steps;
  }

  /** Resolves when it sleeps for the first time. */
  get asleep(): Promise<void> {
    return this.#asleep.promise;
  }

  wake(): void {
    this.#stepsToSleep = Infinity;
    this.#sleep?.resolve();
    this.#sleep = undefined;
  }

  /** Resolves when it does not sleep. */
  async awake(): Promise<void> {
    while (this.#sleep !== undefined) await this.#sleep.promise;
  }

  end(): void {
    if (this.#isOver) return;
    this.wake();
    this.#isOver = true;
    this.#die();
  }

  /** Throws when it is over. */
  check(): void {
    if (this.#isOver) throw new Dead("the process is dead");
  }

  step(): void {
    this.check();
    if (--this.#stepsToSleep === 0) {
      this.#sleep = Promise.withResolvers();
      this.#asleep.resolve();
    }
    if (--this.#stepsLeft > 0) return;
    this.end();
    this.check();
  }

  /**
   * The port as the process has it. Each call is a step before and a step after: the process may
   * die with the call not made, or made and not known.
   */
  bind<Port extends object>(port: Port): Port {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return async (...args: unknown[]) => {
          this.step();
          await this.awake();
          this.check();
          const result = await member.apply(target, args);
          this.step();
          await this.awake();
          this.check();
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
