import { messageOf } from "../../src/base/failure.ts";
import type { FakeUpstream } from "../../tests/support/fake_upstream.ts";
import { makeStoreObject, type StoreObject } from "../../tests/support/store_object.ts";
import type { ClientWorld } from "../soak/client.ts";
import type { Dice } from "../soak/dice.ts";

/** New paths appear all the time: stored ones need no other member. */
const PATHS_PER_SECOND = 4;
/** The largest closure: a pin must not protect all that the size limit allows. */
const CLOSURE_MAX = 4;
const SIZES = [500, 2_000, 20_000, 60_000, 200_000, 2_000_000];

/** An upstream that gets new paths all the time. */
export class GrowingWorld implements ClientWorld {
  readonly objects: StoreObject[] = [];
  readonly #upstream: FakeUpstream;
  readonly #dice: Dice;
  readonly #paths = new Set<string>();

  constructor(upstream: FakeUpstream, dice: Dice) {
    this.#upstream = upstream;
    this.#dice = dice;
  }

  /** Resolves when it has its first path. */
  async grow(isOver: () => boolean): Promise<Disposable> {
    await this.#add();
    const add = () => void this.#add().catch((error) => console.error(messageOf(error)));
    const timer = setInterval(() => isOver() || add(), 1_000 / PATHS_PER_SECOND);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /** Whether the upstream has this path: clients ask for absent ones, too. */
  has(path: string): boolean {
    return this.#paths.has(path);
  }

  async filesOf(object: StoreObject): Promise<ReadonlyMap<string, Uint8Array>> {
    const { compression, bytes } = await this.#upstream.narFileOf(object);
    return new Map([[compression, bytes]]);
  }

  async #add(): Promise<void> {
    const seed = this.objects.length + 1;
    const size = this.#dice.pick(SIZES) + this.#dice.below(1_000);
    const near = this.objects.slice(this.objects.length - this.objects.length % CLOSURE_MAX);
    const references = near.filter(() => this.#dice.part() < 0.5);
    const object = makeStoreObject({ name: `chaos-${seed}`, size, seed, references });
    this.#upstream.add(object);
    this.#paths.add(`/${object.storePathHash}.narinfo`);
    this.#paths.add(`/${await this.#upstream.narUrlOf(object)}`);
    this.objects.push(object);
  }
}
