import process from "node:process";

const LOOK_EVERY_MS = 20;

/** Load of this process, which runs all clients and the upstream: it distorts the figures. */
export class OwnLoad implements Disposable {
  readonly #startedMs = performance.now();
  readonly #timer: ReturnType<typeof setInterval>;
  #lastMs = this.#startedMs;
  #standstillMs = 0;

  constructor() {
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      this.#standstillMs = Math.max(this.#standstillMs, nowMs - this.#lastMs - LOOK_EVERY_MS);
      this.#lastMs = nowMs;
    }, LOOK_EVERY_MS);
  }

  /** Near 100 % of a processor, clients look slow that are not read. */
  get rows(): readonly (readonly [string, string])[] {
    const { user, system } = process.cpuUsage();
    const share = (user + system) / 1_000 / (performance.now() - this.#startedMs);
    return [
      ["this harness: of a processor", `${Math.round(100 * share)} %`],
      ["this harness: longest standstill", `${Math.round(this.#standstillMs)} ms`],
    ];
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
