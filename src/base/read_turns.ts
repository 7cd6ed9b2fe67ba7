import { clock } from "../runtime/current.ts";
import { Failure } from "./failure.ts";
import { networkOf } from "./network_of.ts";

/** Who waits for an expensive read. */
export interface Waiter {
  /** Clients take turns: by their addresses, IPv6 by its network. */
  readonly client: string;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

export interface ExpensiveRead<Value> {
  /** Those that wait for the same read share one run. */
  readonly key: string;
  /** Ends soon after its signal fires. */
  readonly run: (signal: AbortSignal) => Promise<Value>;
}

export interface ReadTurnsLimits {
  /** Reads that wait. One more is refused. */
  readonly waitingMax: number;
  readonly waitMaxMs: number;
  readonly runMaxMs: number;
}

const LIMITS: ReadTurnsLimits = { waitingMax: 32, waitMaxMs: 10_000, runMaxMs: 60_000 };

interface Queued {
  readonly key: string;
  readonly client: string;
  readonly run: (signal: AbortSignal) => Promise<unknown>;
  readonly ending: AbortController;
  readonly waiters: Set<PromiseWithResolvers<unknown>>;
}

/**
 * Runs expensive reads one at a time, in turns of their clients. Who asks for a read that waits
 * shares it; one that runs may have begun before the last change. A read ends when nobody waits for
 * it any more, and all of them at the disposal. Throws "busy" for a read too many.
 */
export class ReadTurns implements Disposable {
  readonly #limits: ReadTurnsLimits;
  /** In the order of the clients' turns, each with its reads in the order of arrival. */
  readonly #waiting = new Map<string, Queued[]>();
  #running: Queued | undefined;
  #isStopped = false;

  constructor(limits: Partial<ReadTurnsLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** The result of a run that begins after this call. */
  async run<Value>({ client, signal }: Waiter, read: ExpensiveRead<Value>): Promise<Value> {
    signal.throwIfAborted();
    if (this.#isStopped) throw stopping();
    const queued = this.#find(read.key) ?? this.#queue(networkOf(client), read);
    const waiter = Promise.withResolvers<unknown>();
    queued.waiters.add(waiter);
    const leave = (reason: unknown) => {
      queued.waiters.delete(waiter);
      waiter.reject(reason);
      if (queued.waiters.size === 0) this.#abandon(queued, reason);
    };
    const left = () => leave(signal.reason);
    signal.addEventListener("abort", left, { once: true });
    using _waiting = clock.after(this.#limits.waitMaxMs, () => {
      if (queued !== this.#running) leave(busy("it waited for too long"));
    });
    this.#next();
    try {
      return await waiter.promise as Value;
    } finally {
      signal.removeEventListener("abort", left);
    }
  }

  /** Ends the read that runs, and refuses all others. */
  [Symbol.dispose](): void {
    this.#isStopped = true;
    for (const queued of [...this.#waiting.values()].flat()) settle(queued, stopping());
    this.#waiting.clear();
    if (this.#running !== undefined) settle(this.#running, stopping());
    this.#running?.ending.abort(stopping());
  }

  #find(key: string): Queued | undefined {
    for (const reads of this.#waiting.values()) {
      const found = reads.find((read) => read.key === key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #queue(client: string, { key, run }: ExpensiveRead<unknown>): Queued {
    this.#makeRoom(client);
    const queued = { key, client, run, ending: new AbortController(), waiters: new Set<never>() };
    const reads = this.#waiting.get(client);
    if (reads === undefined) this.#waiting.set(client, [queued]);
    else reads.push(queued);
    return queued;
  }

  /** In a full queue, the last read of the client with the most reads goes, or this one. */
  #makeRoom(client: string): void {
    const all = [...this.#waiting.values()];
    if (all.flat().length < this.#limits.waitingMax) return;
    const [most = []] = all.toSorted((one, other) => other.length - one.length);
    const own = this.#waiting.get(client)?.length ?? 0;
    const last = most.length > own + 1 ? most.at(-1) : undefined;
    if (last === undefined) throw busy("too many wait");
    this.#remove(last);
    settle(last, busy("another client has its turn"));
  }

  #abandon(queued: Queued, reason: unknown): void {
    if (queued === this.#running) queued.ending.abort(reason);
    else this.#remove(queued);
  }

  #remove(queued: Queued): void {
    const reads = this.#waiting.get(queued.client) ?? [];
    const others = reads.filter((one) => one !== queued);
    if (others.length > 0) this.#waiting.set(queued.client, others);
    else this.#waiting.delete(queued.client);
  }

  #next(): void {
    const [first] = this.#waiting;
    if (this.#running !== undefined || first === undefined) return;
    const [client, [queued, ...others]] = first;
    // The next turn is another client's.
    this.#waiting.delete(client);
    if (others.length > 0) this.#waiting.set(client, others);
    if (queued !== undefined) void this.#begin(queued);
  }

  /** Never rejects. */
  async #begin(queued: Queued): Promise<void> {
    const { ending, run, waiters } = queued;
    this.#running = queued;
    using _running = clock.after(this.#limits.runMaxMs, () => {
      settle(queued, busy("it took too long"));
      ending.abort(busy("it took too long"));
    });
    try {
      const value = await run(ending.signal);
      for (const waiter of waiters) waiter.resolve(value);
    } catch (error) {
      settle(queued, error);
    } finally {
      this.#running = undefined;
      this.#next();
    }
  }
}

/** Rejects everybody who waits for a read. */
function settle({ waiters }: Queued, reason: unknown): void {
  for (const waiter of waiters) waiter.reject(reason);
  waiters.clear();
}

function busy(why: string): Failure {
  return new Failure("busy", `Cannot read that now: ${why}`);
}

function stopping(): Failure {
  return busy("the server is stopping");
}
