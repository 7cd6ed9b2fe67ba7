import { type FakeUpstream, fakeUpstream } from "../../tests/support/fake_upstream.ts";
import { makeStoreObject, type StoreObject } from "../../tests/support/store_object.ts";
import type { Dice } from "./dice.ts";
import { Liar } from "./liar.ts";
import { breakAtRandom } from "./random_faults.ts";

const OBJECTS = 150;
/** Most are small, as in a real store. */
const SIZES = [500, 2_000, 20_000, 60_000, 200_000, 300_000, 1_000_000, 4_000_000];

/** Time for which an upstream is up and down. */
const UP_MS = 20_000;
const DOWN_MS = 6_000;

/** Three overlapping upstreams, two of which send the same files, and one liar. */
export class World implements AsyncDisposable {
  readonly objects: readonly StoreObject[];
  /** The honest ones. */
  readonly upstreams: readonly FakeUpstream[];
  readonly liar: Liar;
  readonly #stopped = Promise.withResolvers<void>();
  #failing: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  private constructor(
    objects: readonly StoreObject[],
    { upstreams, liar }: { upstreams: readonly FakeUpstream[]; liar: Liar },
  ) {
    this.objects = objects;
    this.upstreams = upstreams;
    this.liar = liar;
  }

  static async open(dice: Dice): Promise<World> {
    const objects: StoreObject[] = [];
    for (let seed = 1; seed <= OBJECTS; seed++) {
      const size = dice.pick(SIZES) + dice.below(1_000);
      const references = objects.slice(-dice.below(4));
      objects.push(makeStoreObject({ name: `soak-${seed}`, size, seed, references }));
    }
    const rows = [
      { dialect: "nixos", priority: 10, part: 0.8 },
      { dialect: "nixos", priority: 20, part: 0.8 },
      { dialect: "attic", priority: 30, part: 0.5 },
    ] as const;
    const upstreams = await Promise.all(rows.map(({ dialect, priority, part }) => {
      const own = objects.filter(() => dice.part() < part);
      return fakeUpstream({ dialect, priority, objects: own, stored: true });
    }));
    for (const upstream of upstreams) {
      // Now, as clients would have to wait later.
      for (const object of objects) await upstream.narFileOf(object);
    }
    const liar = await Liar.open({ dice, objects, honest: upstreams });
    return new World(objects, { upstreams, liar });
  }

  /** All valid files of an object, by a narinfo's compression. */
  async filesOf(object: StoreObject): Promise<ReadonlyMap<string, Uint8Array>> {
    const files = await Promise.all(this.upstreams.map((upstream) => upstream.narFileOf(object)));
    return new Map(files.map(({ compression, bytes }) => [compression, bytes]));
  }

  /** Breaks answers, and stops and restarts upstreams, until `mend`. */
  fail(dice: Dice): void {
    for (const upstream of this.upstreams) breakAtRandom(upstream, dice);
    this.liar.lie();
    this.#failing = Promise.all(this.upstreams.map((upstream) => this.#comeAndGo(upstream, dice)));
  }

  async mend(): Promise<void> {
    this.#isStopped = true;
    this.#stopped.resolve();
    await this.#failing;
    this.liar.mend();
    for (const upstream of this.upstreams) {
      upstream.mend();
      await upstream.start();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.mend();
    await Promise.all([
      this.liar[Symbol.asyncDispose](),
      ...this.upstreams.map((upstream) => upstream[Symbol.asyncDispose]()),
    ]);
  }

  async #comeAndGo(upstream: FakeUpstream, dice: Dice): Promise<void> {
    while (!this.#isStopped) {
      await this.#sleep(dice.below(2 * UP_MS));
      if (this.#isStopped) return;
      await upstream.stop();
      await this.#sleep(dice.below(2 * DOWN_MS));
      await upstream.start();
    }
  }

  async #sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    await Promise.race([promise, this.#stopped.promise]);
    clearTimeout(timer);
  }
}
