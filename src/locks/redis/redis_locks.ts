import { messageOf } from "../../base/failure.ts";
import type { StorageId } from "../../base/storage_id.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { OperationOf } from "../../telemetry/instruments/operation_labels.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { NO_METER, type OperationMeter } from "../../telemetry/metrics.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import {
  type Holder,
  type HolderFacts,
  type Lease,
  type LockName,
  type Locks,
  LocksUnavailable,
} from "../locks.ts";
import { redisAnswer, type RedisConnection } from "./redis_client.ts";

/** Deletes a key while it has the value of one lease. */
const FREE_SCRIPT = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("del", KEYS[1])`;

/** Prolongs a key while it has the value of one lease. */
const RENEW_SCRIPT = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("pexpire", KEYS[1], ARGV[2])`;

/** A value of larder has some 120 bytes, and one of a stranger up to 512 MB. */
const VALUE_LENGTH_MAX = 1_024;

/** Keys that may exist although nobody holds them: Redis did not answer. Others expire. */
const UNCERTAIN_MAX = 1_000;

export interface RedisLocksDeps {
  readonly connection: RedisConnection;
  /** In front of every key. */
  readonly keyPrefix: string;
  /** Id behind the prefix: storages may share a Redis. `undefined`: it has none. Never rejects. */
  readonly storageId: () => Promise<StorageId | undefined>;
  /** This member. */
  readonly holder: HolderFacts;
  readonly meter?: CircuitBreakerDeps["meter"];
  readonly log: Logger;
}

/** Locks in Redis: a key with a token that expires by the server's clock. */
export class RedisLocks implements Locks {
  readonly #deps: RedisLocksDeps;
  readonly #breaker: CircuitBreaker;
  /** The values by key. */
  readonly #uncertain = new Map<string, string>();
  #failedKey = "";

  constructor(deps: RedisLocksDeps) {
    this.#deps = deps;
    const { connection: { client, failure, answered }, meter = NO_METER } = deps;
    this.#breaker = new CircuitBreaker({
      // A write that changes nothing, where the last command failed: another node may be well.
      probe: () => unlessWrongType(client.setrange(this.#failedKey, 0, "")),
      closed: () => void this.#freeUncertain(),
      failure,
      answered,
      ...{ meter, log: deps.log },
    });
  }

  async tryAcquire(
    name: LockName,
    ttlMs: number,
    signal?: AbortSignal,
  ): Promise<Lease | undefined> {
    signal?.throwIfAborted();
    const { connection: { client }, holder } = this.#deps;
    const key = await this.#keyOf(name);
    const mine = this.#uncertain.get(key);
    // An earlier answer was lost: the key may be there with this value.
    if (mine !== undefined && await this.#renew(key, mine, ttlMs)) {
      this.#uncertain.delete(key);
      return this.#leaseOf(key, mine, ttlMs);
    }
    const value = valueOf({ ...holder, token: dice.uuid() });
    try {
      const set = () => client.set(key, value, "PX", ttlMs, "NX");
      const answer = await this.#run("acquire", key, set);
      return answer === "OK" ? this.#leaseOf(key, value, ttlMs) : undefined;
    } catch (error) {
      this.#noteUncertain(key, value);
      throw error;
    }
  }

  async holderOf(name: LockName): Promise<Holder | undefined> {
    const key = await this.#keyOf(name);
    const { client } = this.#deps.connection;
    const value = await this.#run(
      "read",
      key,
      () => client.getrange(key, 0, VALUE_LENGTH_MAX),
    );
    return value === undefined ? undefined : holderIn(value);
  }

  async free(name: LockName, holder: Holder): Promise<void> {
    await this.#free(await this.#keyOf(name), valueOf(holder));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#freeUncertain();
    this.#breaker[Symbol.dispose]();
    this.#deps.connection.client.disconnect();
  }

  async #keyOf(name: LockName): Promise<string> {
    const { keyPrefix, storageId } = this.#deps;
    const id = await storageId();
    return keyPrefix + (id === undefined ? name : `${id}:${name}`);
  }

  #leaseOf(key: string, value: string, ttlMs: number): Lease {
    return new RedisLease({
      ttlMs,
      renew: () => this.#renew(key, value, ttlMs),
      free: () => this.#free(key, value).catch(() => this.#noteUncertain(key, value)),
    });
  }

  async #renew(key: string, value: string, ttlMs: number): Promise<boolean> {
    const { client } = this.#deps.connection;
    const renew = () => client.eval(RENEW_SCRIPT, 1, key, value, ttlMs);
    return await this.#run("renew", key, renew) === 1;
  }

  async #free(key: string, value: string): Promise<void> {
    const { client } = this.#deps.connection;
    await this.#run("free", key, () => client.eval(FREE_SCRIPT, 1, key, value));
  }

  /** `undefined` for a key of another type: Redis answers, and nobody of larder has the lock. */
  #run<Value>(
    operation: RedisOperation,
    key: string,
    command: () => Promise<Value>,
  ): Promise<Value | undefined> {
    return this.#breaker.run(operation, async () => {
      try {
        return await unlessWrongType(command());
      } catch (error) {
        this.#failedKey = key;
        throw error;
      }
    });
  }

  #noteUncertain(key: string, value: string): void {
    if (this.#uncertain.size < UNCERTAIN_MAX) this.#uncertain.set(key, value);
  }

  /** Frees the locks that nobody holds. Stops where Redis does not answer. */
  async #freeUncertain(): Promise<void> {
    for (const [key, value] of this.#uncertain) {
      try {
        await this.#free(key, value);
      } catch {
        return;
      }
      if (this.#uncertain.get(key) === value) this.#uncertain.delete(key);
    }
  }
}

/** `undefined` for a key of another type. */
async function unlessWrongType<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (WRONG_TYPE_REGEXP.test(messageOf(error))) return undefined;
    throw error;
  }
}

/** Of a command, and of a command in a script. */
const WRONG_TYPE_REGEXP = /^(?:ERR )?WRONGTYPE\b/;

/** The same text for the same lease, as the scripts compare it. */
function valueOf({ member, token }: Holder): string {
  return JSON.stringify({ member, token });
}

/** `undefined` for a value that larder has not written. */
function holderIn(value: string): Holder | undefined {
  try {
    const { member, token } = JSON.parse(value);
    if (typeof member !== "string" || typeof token !== "string") return undefined;
    return { member, token };
  } catch {
    return undefined;
  }
}

/** Renewals within the life of a lease: two may fail. */
const RENEWALS = 3;

interface RedisLeaseParts {
  readonly ttlMs: number;
  /** Resolves to false when the lease is another's, or nobody's. */
  readonly renew: () => Promise<boolean>;
  /** Never rejects. */
  readonly free: () => Promise<void>;
}

/** A lease that renews itself until it is disposed. */
class RedisLease implements Lease {
  readonly #parts: RedisLeaseParts;
  readonly #lost = new AbortController();
  readonly #timer: Timer;
  #renewedAtMs = clock.nowMs();
  #freeing: Promise<void> | undefined;

  constructor(parts: RedisLeaseParts) {
    this.#parts = parts;
    this.#timer = clock.every(parts.ttlMs / RENEWALS, () => void this.#renew());
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#freeing ??= this.#free();
  }

  #free(): Promise<void> {
    this.#timer.cancel();
    return this.#parts.free();
  }

  async #renew(): Promise<void> {
    const calledAtMs = clock.nowMs();
    try {
      if (await this.#parts.renew()) this.#renewedAtMs = calledAtMs;
      else this.#lose();
    } catch {
      // Redis may answer again in time.
      if (clock.nowMs() - this.#renewedAtMs >= this.#parts.ttlMs) this.#lose();
    }
  }

  #lose(): void {
    this.#timer.cancel();
    this.#lost.abort();
  }
}

/** Failures in a row that open the circuit. A frozen Redis costs a client as many time limits. */
const FAILURES_MAX = 2;

/** The pause between two probes while the circuit is open. */
const PROBE_EVERY_MS = 1_000;

/** Redis refuses the login, or wants one. */
const LOGIN_REGEXP = /^(?:WRONGPASS|NOAUTH)\b/;

const LOGIN_HINT = "check --cache-redis-username and --cache-redis-password, or its -file";

interface CircuitBreakerDeps {
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

type RedisOperation = OperationOf<"redis">;

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
