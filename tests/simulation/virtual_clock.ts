import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers";
import { Clock, type Timer } from "../../src/runtime/clock.ts";

/** Somebody whose timers end or wait with it: a process of the world. */
export class Owner {
  #isDead = false;
  #pausedUntilMs = 0;
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  /** None of its timers fires any more. */
  die(): void {
    this.#isDead = true;
  }

  /** Its timers wait until then, as those of a process that is stopped. */
  pauseUntil(atMs: number): void {
    this.#pausedUntilMs = atMs;
  }
}

const owners = new AsyncLocalStorage<Owner | undefined>();

/** Runs code whose timers belong to `owner`; `undefined`: to the world. */
export function asOwner<Value>(owner: Owner | undefined, run: () => Value): Value {
  return owners.run(owner, run);
}

class VirtualTimer implements Timer {
  atMs: number;
  /** Timers of one moment fire in the order in which they were set. */
  order: number;
  due: (() => void) | undefined;
  readonly everyMs: number | undefined;
  readonly owner: Owner | undefined;

  constructor(
    at: { readonly atMs: number; readonly order: number },
    due: () => void,
    { everyMs, owner }: {
      readonly everyMs?: number | undefined;
      readonly owner: Owner | undefined;
    },
  ) {
    this.atMs = at.atMs;
    this.order = at.order;
    this.due = due;
    this.everyMs = everyMs;
    this.owner = owner;
  }

  cancel(): void {
    this.due = undefined;
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}

/** The wall clock of a world at its start: a moment of no importance. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

/**
 * Time that jumps to the next timer once nothing else can go on. Whatever waits for promises, web
 * streams or calls of `node:zlib` goes on within one macrotask (measured, 2.6.8 and 2.9.6).
 */
export class VirtualClock extends Clock {
  /** Not 0, which some libraries take for no time. */
  #nowMs = 1;
  #order = 0;
  /** A binary heap by time and order. */
  readonly #heap: VirtualTimer[] = [];
  jumps = 0;
  /** Of another world: a test that shares a module with scenes runs in the context of the last one. */
  readonly #stranger = owners.getStore();

  override nowMs(): number {
    return this.#nowMs;
  }

  override wallMs(): number {
    return EPOCH_MS + Math.floor(this.#nowMs);
  }

  override after(ms: number, due: () => void): Timer {
    return this.#start(ms, due);
  }

  override every(ms: number, beat: () => void): Timer {
    return this.#start(ms, beat, Math.max(1, ms));
  }

  override soon(run: () => void): Timer {
    return this.#start(0, run);
  }

  /** Timers that are not cancelled, of the living. */
  get pending(): number {
    return this.#heap.filter(({ due, owner }) => due !== undefined && !owner?.isDead).length;
  }

  /**
   * Runs the world until `work` is settled. Throws where nothing goes on any more, and behind
   * `endMs`.
   */
  async play<Value>(work: Promise<Value>, endMs = Infinity): Promise<Value> {
    let isOver = false;
    const over = () => void (isOver = true);
    work.then(over, over);
    await macrotask();
    while (!isOver) {
      const timer = this.#pop();
      if (timer === undefined) throw new Error(`The world stands still at ${this.#nowMs} ms`);
      if (timer.due === undefined || timer.owner?.isDead) continue;
      const pausedUntilMs = timer.owner?.pausedUntilMs ?? 0;
      if (pausedUntilMs > timer.atMs) {
        this.#push(timer, pausedUntilMs);
        continue;
      }
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      if (this.#nowMs > endMs) throw new Error(`The world goes on at ${endMs} ms`);
      this.jumps++;
      const { due } = timer;
      if (timer.everyMs === undefined) timer.due = undefined;
      else this.#push(timer, this.#nowMs + timer.everyMs);
      owners.run(timer.owner, due);
      await macrotask();
    }
    return await work;
  }

  #start(ms: number, due: () => void, everyMs?: number): VirtualTimer {
    const atMs = this.#nowMs + Math.max(0, ms);
    const present = owners.getStore();
    const owner = present === this.#stranger ? undefined : present;
    const timer = new VirtualTimer({ atMs, order: 0 }, due, { everyMs, owner });
    this.#push(timer, atMs);
    return timer;
  }

  #push(timer: VirtualTimer, atMs: number): void {
    timer.atMs = atMs;
    timer.order = this.#order++;
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(heap[at], heap[parent])) break;
      swap(heap, at, parent);
      at = parent;
    }
  }

  #pop(): VirtualTimer | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || first === last) return first;
    heap[0] = last;
    for (let at = 0;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && isBefore(heap[child], heap[least])) least = child;
      }
      if (least === at) return first;
      swap(heap, at, least);
      at = least;
    }
  }
}

function isBefore(one: VirtualTimer | undefined, other: VirtualTimer | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

function swap(heap: VirtualTimer[], one: number, other: number): void {
  const [first, second] = [heap[one], heap[other]];
  if (first === undefined || second === undefined) return;
  heap[one] = second;
  heap[other] = first;
}

function macrotask(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
