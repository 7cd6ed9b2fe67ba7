import { messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { OperationOf } from "../../telemetry/instruments/operation_labels.ts";
import { NO_METER, type OperationMeter } from "../../telemetry/operation_meter.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import { LocksUnavailable } from "../locks.ts";
import { redisAnswer } from "./redis_client.ts";

/** Failures in a row that open the circuit. A frozen Redis costs a client as many time limits. */
const FAILURES_MAX = 2;

/** The pause between two probes while the circuit is open. */
const PROBE_EVERY_MS = 1_000;

/** Redis refuses the login, or wants one. */
const LOGIN_REGEXP = /^(?:WRONGPASS|NOAUTH)\b/;

const LOGIN_HINT = "check --cache-redis-username and --cache-redis-password, or its -file";

export interface CircuitBreakerDeps {
  /** Why there is no connection; `undefined`: there is one, or that is unknown. */
  readonly failure: () => unknown;
  /** Called after each answer: earlier failures are over. */
  readonly answered: () => void;
  /** Rejects unless Redis answers. */
  readonly probe: () => Promise<unknown>;
  /** Called when the circuit has closed again. */
  readonly closed: () => void;
  /** Default: it counts nothing. */
  readonly meter?: OperationMeter<RedisOperation>;
  readonly log: Logger;
}

export type RedisOperation = OperationOf<"redis">;

/** Keeps clients from waiting for a Redis that does not answer. */
export class CircuitBreaker implements Disposable {
  readonly #deps: CircuitBreakerDeps;
  readonly #stop = new AbortController();
  readonly #outage;
  #failures = 0;
  #isOpen = false;

  constructor(deps: CircuitBreakerDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "redis-back");
  }

  /** Runs a command. Throws a LocksUnavailable if it fails; at once while the circuit is open. */
  async run<Value>(operation: RedisOperation, command: () => Promise<Value>): Promise<Value> {
    if (this.#isOpen) {
      throw new LocksUnavailable("circuit_breaker", "Cannot use locks: Redis is unavailable");
    }
    try {
      const value = await this.#answer(operation, command);
      this.#failures = 0;
      this.#deps.answered();
      return value;
    } catch (error) {
      if (++this.#failures >= FAILURES_MAX) this.#open(error);
      const message = `Cannot use locks: ${messageOf(this.#deps.failure() ?? error)}`;
      throw new LocksUnavailable("redis_error", message, error);
    }
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }

  #answer<Value>(operation: RedisOperation, command: () => Promise<Value>): Promise<Value> {
    const { meter = NO_METER } = this.#deps;
    return meter.run(operation, () => redisAnswer(command()));
  }

  #open(error: unknown): void {
    if (this.#isOpen || this.#stop.signal.aborted) return;
    this.#isOpen = true;
    const reason = messageOf(this.#deps.failure() ?? error);
    const hint = LOGIN_REGEXP.test(reason) ? { hint: LOGIN_HINT } : {};
    this.#outage.failed("redis-away", { error: reason, ...hint });
    void this.#probe();
  }

  async #probe(): Promise<void> {
    const { probe, closed, answered, log } = this.#deps;
    const { signal } = this.#stop;
    for (;;) {
      await clock.pause(PROBE_EVERY_MS, signal);
      if (signal.aborted) return;
      try {
        await this.#answer("probe", probe);
        break;
      } catch (error) {
        log.debug("Redis does not answer", { error: messageOf(error) });
      }
    }
    this.#isOpen = false;
    this.#failures = 0;
    answered();
    this.#outage.worked();
    closed();
  }
}
