import { Failure } from "../base/failure.ts";
import { ReadTurns, type Waiter } from "../base/read_turns.ts";
import { readReferenceGraph } from "../closure/reference_graph.ts";
import { type ReferrerGraph, referrersIn, rootsReaching } from "../closure/roots_reaching.ts";
import {
  type Change,
  type ChangeOf,
  type ChangeWriter,
  type GraphFinder,
  LOST_MAX,
  type NarinfoFinder,
  type PinFinder,
  type PinNameFinder,
  type PinNoter,
  type PinRoot,
} from "../metadata/metadata_store.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import { type HeldName, heldNames, type PinName } from "./pin_name.ts";
import type { ClosureLister, PinnedClosure } from "./pinned_closures.ts";

interface PinsDeps {
  readonly metadata: NarinfoFinder & PinFinder & PinNameFinder & ChangeWriter & PinNoter;
  readonly nowMs: () => number;
  /** Called when the set of protected paths may have changed. */
  readonly changed: () => void;
  /** Called with each pin whose closure is to be kept complete from now on. */
  readonly keepsComplete: (root: StorePathHash) => void;
}

/**
 * The pin roots that clients set. A pin lasts until it is removed, whatever happens to its root. A
 * name holds its newest roots: one that rolls off is unpinned, unless a plain pin or another name
 * holds it.
 *
 * A pin protects its root's closure: each path that stored references reach from the root. The
 * stored parts of such a path stay: its narinfo, and the NAR file that this narinfo names. A path
 * that arrives later is protected from then on, and so are its references. Eviction and retention
 * leave all that out. A pin protects nothing from a DELETE, and neither documents nor staged NARs.
 *
 * The walk along the references fills the table `protected_path`; its changes set `protected` in
 * `narinfo_use`. Eviction and retention read that column.
 *
 * SQLite: `metadata/sqlite/pins.ts` walks, and triggers in
 * `metadata/schema/0019_initial.sqlite.sql` set the column. `coldNarinfos` and `coldEmpties` in
 * `metadata/sqlite/space.ts` read it. PostgreSQL: `protect` and `set_protected` in
 * `metadata/schema/0015_initial.postgres.sql` walk and set, `coldest` and `remove_empties` in
 * `0015_initial.postgres.sql` read.
 */
export class Pins {
  readonly #deps: PinsDeps;

  constructor(deps: PinsDeps) {
    this.#deps = deps;
  }

  /**
   * False if the narinfo is not stored. May be repeated. `keepComplete`: whether larder fetches
   * what is missing of the closure, now and later; `undefined`: as before, at first not.
   */
  async pin(storePathHash: StorePathHash, keepComplete?: boolean): Promise<boolean> {
    const known = await this.#deps.metadata.findPin(storePathHash);
    const pin = { storePathHash, pinnedAtMs: this.#deps.nowMs() };
    const isNew = known === undefined || known.rolls === true;
    if (isNew && !await this.#pin({ kind: "put-pin", pin }, known)) return false;
    await this.#note(storePathHash, keepComplete);
    return true;
  }

  /**
   * Pins the root as the newest one under the name, which keeps its newest `keep` roots. The others
   * leave it, and are unpinned unless something else holds them. False as for `pin`.
   */
  async roll(
    { name, keep }: PinName,
    storePathHash: StorePathHash,
    keepComplete?: boolean,
  ): Promise<boolean> {
    const known = await this.#deps.metadata.findPin(storePathHash);
    const pinnedAtMs = this.#deps.nowMs();
    const change = { kind: "roll-pin", name, storePathHash, pinnedAtMs, keep } as const;
    if (!await this.#pin(change, known)) return false;
    await this.#note(storePathHash, keepComplete);
    return true;
  }

  async #note(root: StorePathHash, keepComplete: boolean | undefined): Promise<void> {
    if (keepComplete === undefined) return;
    const { metadata, changed, keepsComplete } = this.#deps;
    await metadata.notePin(root, { keepComplete });
    changed();
    if (keepComplete) keepsComplete(root);
  }

  /** Unpins a root, whatever holds it: it leaves its names. Does nothing if it is not pinned. */
  async unpin(storePathHash: StorePathHash): Promise<void> {
    await this.#apply({ kind: "remove-pin", storePathHash });
  }

  /**
   * The name gives up its roots. Those that nothing else holds are unpinned. False if it has none.
   */
  async unpinName(name: string): Promise<boolean> {
    const named = await this.#deps.metadata.namedPins();
    if (named.every((pin) => pin.name !== name)) return false;
    await this.#apply({ kind: "unpin-name", name });
    return true;
  }

  async #pin(
    change: ChangeOf<"put-pin" | "roll-pin">,
    known: PinRoot | undefined,
  ): Promise<boolean> {
    const { storePathHash } = change.kind === "put-pin" ? change.pin : change;
    const { metadata } = this.#deps;
    if (known === undefined && await metadata.findNarinfo(storePathHash) === undefined) {
      return false;
    }
    await this.#apply(change);
    return true;
  }

  async #apply(change: Change): Promise<void> {
    await this.#deps.metadata.apply([change]);
    this.#deps.changed();
  }
}

/** Maximum graph of all pins' closures: a larger one takes too long for an answer. */
const GRAPH = { pathsMax: 200_000, referencesMax: 3_000_000 };
const GRAPH_LIMIT_MS = 5_000;

/** Time after which the pins are read again: another member may have changed them. */
const PINS_FOR_MS = 1_000;

interface PinReadsDeps {
  readonly metadata: PinFinder & PinNameFinder & Pick<GraphFinder, "graphRows">;
  readonly closures: Pick<ClosureLister, "list">;
  /** Another number after each change of rows and pins. */
  readonly generation: () => number;
  /** Never set back. */
  readonly nowMs?: () => number;
}

/**
 * The reads whose cost grows with the pins and their closures. All clients share the last result
 * until rows or pins change. Counts take turns; one that nobody waits for ends.
 */
export class PinReads implements Disposable {
  readonly #deps: PinReadsDeps;
  readonly #counts = new ReadTurns();
  readonly #pins = new HeldRead<readonly PinRoot[]>();
  readonly #names = new HeldRead<readonly HeldName[]>();
  readonly #closures = new HeldRead<readonly PinnedClosure[]>();
  readonly #lost = new HeldRead<number>();
  /** `undefined`: the closures are too large. */
  readonly #graph = new HeldRead<ReferrerGraph | undefined>();
  #lastPins: readonly PinRoot[] = [];
  #lostBytes = 0;
  #counted: (closures: readonly PinnedClosure[]) => void = () => undefined;

  constructor(deps: PinReadsDeps) {
    this.#deps = deps;
  }

  /** Calls `on` with each count of the closures. */
  whenCounted(on: (closures: readonly PinnedClosure[]) => void): void {
    this.#counted = on;
  }

  /** The pins in their order: the same list for all until they change. */
  async pins(): Promise<readonly PinRoot[]> {
    return await this.#pins.get(this.#keyOfPins(), async () => {
      const before = this.#lastPins;
      const pins = await this.#deps.metadata.pins();
      return this.#lastPins = isSame(pins, before) ? before : pins;
    });
  }

  /** The names that hold roots, in alphabetical order. */
  async names(): Promise<readonly HeldName[]> {
    return await this.#names.get(
      this.#keyOfPins(),
      async () => heldNames(await this.#deps.metadata.namedPins()),
    );
  }

  /** The pinned closures, counted after this call unless nothing has changed since the last count. */
  async closures(waiter: Waiter): Promise<readonly PinnedClosure[]> {
    const { closures, generation } = this.#deps;
    return await this.#counts.run(waiter, {
      key: "closures",
      run: async (signal) => {
        const key = [generation(), await this.pins()];
        return await this.#closures.get(key, async () => {
          const counted = await closures.list(signal);
          this.#counted(counted);
          return counted;
        });
      },
    });
  }

  /**
   * Bytes that the account counts as pinned, of files that the last looks found lost. A shared file
   * counts once. As last read: `readLost`.
   */
  get lostBytes(): number {
    return this.#lostBytes;
  }

  /** Reads `lostBytes` again. One query, and none while nothing is lost. */
  async readLost(): Promise<void> {
    const pins = await this.pins();
    this.#lostBytes = await this.#lost.get([this.#deps.generation(), pins], async () => {
      const lost = new Set(pins.flatMap(({ look }) => look?.lost ?? []));
      if (lost.size === 0) return 0;
      const rows = await this.#deps.metadata.graphRows([...lost].slice(0, LOST_MAX));
      const files = new Map(rows.map(({ narName, keptBytes = 0 }) => [narName, keptBytes]));
      return files.values().reduce((sum, bytes) => sum + bytes, 0);
    });
  }

  /** The pinned roots whose closures contain `target`. Throws "overloaded" beyond a limit. */
  async rootsReaching(
    target: StorePathHash,
    signal: AbortSignal,
  ): Promise<readonly StorePathHash[]> {
    const generation = this.#deps.generation();
    const pins = await this.pins();
    const graph = await this.#graph.get([generation, pins], () => this.#readGraph(pins, signal));
    if (graph === undefined) {
      throw new Failure("overloaded", "Cannot find pins: their closures are too large");
    }
    return await rootsReaching(graph, target, clock.slice(signal));
  }

  /** Ends a count, and lets nobody wait for another one. */
  [Symbol.dispose](): void {
    this.#counts[Symbol.dispose]();
    const held = [this.#pins, this.#names, this.#closures, this.#lost, this.#graph];
    for (const read of held) read[Symbol.dispose]();
  }

  #keyOfPins(): readonly unknown[] {
    const { generation, nowMs = () => clock.nowMs() } = this.#deps;
    return [generation(), Math.floor(nowMs() / PINS_FOR_MS)];
  }

  async #readGraph(
    pins: readonly PinRoot[],
    signal: AbortSignal,
  ): Promise<ReferrerGraph | undefined> {
    const roots = pins.map(({ storePathHash }) => storePathHash);
    const slice = clock.slice(signal);
    const limits = { ...GRAPH, untilMs: clock.nowMs() + GRAPH_LIMIT_MS };
    try {
      const reading = { slice, limits, signal };
      const graph = await readReferenceGraph(this.#deps.metadata, roots, reading);
      return await referrersIn(graph, roots, slice);
    } catch (error) {
      // Held like a graph: the next client would find the same, after as much work.
      if (error instanceof Failure && error.kind === "overloaded") return undefined;
      throw error;
    }
  }
}

function isSame(some: readonly PinRoot[], others: readonly PinRoot[]): boolean {
  return some.length === others.length && some.every((pin, at) => {
    const other = others[at];
    return pin.storePathHash === other?.storePathHash && pin.pinnedAtMs === other.pinnedAtMs &&
      pin.rolls === other.rolls && pin.names?.join() === other.names?.join() &&
      pin.keepComplete === other.keepComplete && pin.look?.atMs === other.look?.atMs;
  });
}

/** Time without a request after which the result goes. */
const IDLE_MAX_MS = 10_000;

interface Held<Value> {
  readonly key: readonly unknown[];
  readonly value: Promise<Value>;
}

/**
 * The result of an expensive read, for those that ask for it before anything changes. It goes after
 * ten seconds without a request: it may be large.
 */
class HeldRead<Value> implements Disposable {
  #held: Held<Value> | undefined;
  #timer: Timer | undefined;

  /** The held result if it has the same key, else that of `read`. It holds no failure. */
  async get(key: readonly unknown[], read: () => Promise<Value>): Promise<Value> {
    this.#timer?.cancel();
    const held = this.#held;
    const isSame = held?.key.every((part, at) => part === key[at]) ?? false;
    const reading = held !== undefined && isSame ? held : { key, value: read() };
    this.#held = reading;
    try {
      const value = await reading.value;
      this.#dropLater();
      return value;
    } catch (error) {
      if (this.#held === reading) this.#held = undefined;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#held = undefined;
  }

  #dropLater(): void {
    this.#timer?.cancel();
    this.#timer = clock.after(IDLE_MAX_MS, () => void (this.#held = undefined), false);
  }
}
