import { MemoryAllowance, type MemoryShare } from "../../base/memory_allowance.ts";

/** Half of a client's use is forgotten in this time. */
const HALF_LIFE_MS = 10_000;

/** Use that no longer counts. */
const FORGOTTEN_MS = 1;

/** Clients without a job that are remembered. */
const CLIENTS_MAX = 1_000;

/** A job for one thread: it decodes bytes of a client, a slice at a time. */
export interface MeasureJob {
  /** Clients share the time evenly; `undefined`: one that nobody knows. */
  readonly client: string | undefined;
  /** The job yields to all that have used less than this, whoever sent them. */
  readonly budgetMs: number;
  /** Runs the next slice. Called once for each time that the job wants one. */
  run(): void;
  /** Its memory goes to another job. Its turn has ended. */
  giveUp(): void;
}

/** The end of a slice. */
export interface Slice {
  /** Processor time of the slice. */
  readonly usedMs: number;
  /** Output of the job so far. */
  readonly decodedBytes: number;
}

/** A place of one job in the turns. */
export interface MeasureTurn extends Disposable {
  /** The job wants to run: for the first time, or because it has input again. */
  wants(): void;
  /**
   * A slice has ended. The job runs again when it is its turn, with `memoryBytes` more memory than
   * it has; `undefined`: it has no input, and does not want to run.
   */
  paused(slice: Slice, memoryBytes: number | undefined): void;
}

export interface MeasureTurnsDeps {
  /** Memory of all jobs that have begun. A job that wants more than this waits for ever. */
  readonly memoryBytes: number;
  readonly nowMs: () => number;
}

interface Place {
  readonly job: MeasureJob;
  readonly memory: MemoryShare;
  state: "idle" | "waiting" | "running" | "over";
  wantedBytes: number;
  heldBytes: number;
  usedMs: number;
  decodedBytes: number;
}

/**
 * The order in which the jobs of strangers run on a thread: one at a time, a slice each. The client
 * that used least goes first, then its job that used least, so that a small job passes large ones.
 * Where memory runs short, the job with the largest output is given up.
 */
export class MeasureTurns {
  readonly #memory: MemoryAllowance;
  readonly #clients: ClientUse;
  /** In the order of arrival. */
  readonly #places = new Set<Place>();
  #running: Place | undefined;

  constructor({ memoryBytes, nowMs }: MeasureTurnsDeps) {
    this.#memory = new MemoryAllowance(memoryBytes);
    this.#clients = new ClientUse(nowMs);
  }

  enter(job: MeasureJob): MeasureTurn {
    const place: Place = {
      ...{ job, memory: this.#memory.share(), state: "idle" },
      ...{ wantedBytes: 0, heldBytes: 0, usedMs: 0, decodedBytes: 0 },
    };
    this.#places.add(place);
    return {
      wants: () => {
        if (place.state !== "idle") return;
        place.state = "waiting";
        this.#next();
      },
      paused: ({ usedMs, decodedBytes }, memoryBytes) => {
        if (place.state !== "running") return;
        place.state = memoryBytes === undefined ? "idle" : "waiting";
        place.wantedBytes = memoryBytes ?? 0;
        place.usedMs += usedMs;
        place.decodedBytes = decodedBytes;
        this.#clients.used(job.client, usedMs);
        this.#running = undefined;
        this.#next();
      },
      [Symbol.dispose]: () => this.#end(place),
    };
  }

  #end(place: Place): void {
    if (place.state === "over") return;
    this.#remove(place);
    if (this.#running === place) this.#running = undefined;
    this.#next();
  }

  #remove(place: Place): void {
    place.state = "over";
    place.memory[Symbol.dispose]();
    this.#places.delete(place);
  }

  #next(): void {
    if (this.#running !== undefined) return;
    const waiting = [...this.#places].filter(({ state }) => state === "waiting");
    // The sort is stable: of equal ones, the first that came.
    const ranked = waiting.map((place) => ({ place, rank: this.#rankOf(place) }))
      .sort((one, other) => compare(one.rank, other.rank));
    for (const { place } of ranked) {
      // A job that is given up may end others.
      if (this.#running !== undefined) return;
      if (place.state !== "waiting" || !this.#hasMemory(place)) continue;
      place.state = "running";
      this.#running = place;
      return place.job.run();
    }
    this.#endStandstill(ranked.map(({ place }) => place));
  }

  /**
   * Where each job that waits holds memory and wants more, none of them would ever run: the last one
   * in the order makes room.
   */
  #endStandstill(ranked: readonly Place[]): void {
    const waiting = ranked.filter(({ state }) => state === "waiting");
    const last = waiting.slice(1).findLast(({ heldBytes }) => heldBytes > 0);
    if (last === undefined) return;
    this.#giveUp(last);
    this.#next();
  }

  /** Its end does not begin the turn of another. */
  #giveUp(place: Place): void {
    this.#running = place;
    this.#remove(place);
    place.job.giveUp();
    this.#running = undefined;
  }

  #rankOf({ job, usedMs }: Place): readonly number[] {
    return [usedMs > job.budgetMs ? 1 : 0, this.#clients.of(job.client), usedMs];
  }

  #hasMemory(place: Place): boolean {
    while (!place.memory.take(place.wantedBytes)) {
      const largest = this.#largestBeside(place);
      if (largest === undefined) return false;
      this.#giveUp(largest);
    }
    place.heldBytes += place.wantedBytes;
    place.wantedBytes = 0;
    return true;
  }

  /** The job to give up for this one: one that waits for its own client, else a larger one. */
  #largestBeside({ decodedBytes }: Place): Place | undefined {
    const holders = [...this.#places].filter(({ heldBytes }) => heldBytes > 0);
    const idle = holders.filter(({ state }) => state === "idle");
    const larger = holders.filter((one) => one.decodedBytes > decodedBytes);
    return [idle, larger].flatMap((some) =>
      some.sort((one, other) => other.decodedBytes - one.decodedBytes).slice(0, 1)
    )[0];
  }
}

function compare(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}

/** The processor time of each client, of late. */
class ClientUse {
  readonly #nowMs: () => number;
  readonly #used = new Map<string | undefined, { readonly ms: number; readonly atMs: number }>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  of(client: string | undefined): number {
    const use = this.#used.get(client);
    if (use === undefined) return 0;
    const ms = use.ms * 2 ** (-(this.#nowMs() - use.atMs) / HALF_LIFE_MS);
    return ms < FORGOTTEN_MS ? 0 : ms;
  }

  used(client: string | undefined, ms: number): void {
    const use = { ms: this.of(client) + ms, atMs: this.#nowMs() };
    // The client that used something longest ago is the first in the map.
    this.#used.delete(client);
    this.#used.set(client, use);
    if (this.#used.size > CLIENTS_MAX) this.#used.delete(this.#used.keys().next().value);
  }
}
