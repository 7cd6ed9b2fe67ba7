import { createHash } from "node:crypto";
import { clock } from "../../src/runtime/current.ts";
import { SeededDice } from "../../tests/simulation/seeded_dice.ts";
import { DROP, type Exchange } from "../../tests/support/exact_server.ts";
import { type FakeUpstream, fakeUpstream } from "../../tests/support/fake_upstream.ts";
import * as faults from "../../tests/support/faults.ts";
import { badSignature, garbage, wrongFileSize } from "../../tests/support/narinfo_faults.ts";
import { makeStoreObject, type StoreObject } from "../../tests/support/store_object.ts";
import type { WorldObject } from "../../tests/simulation/world_objects.ts";
import type { Answer } from "../../tests/support/wire_answer.ts";

const OBJECTS = 150;
/** Most are small, as in a real store. */
const SIZES = [500, 2_000, 20_000, 60_000, 200_000, 300_000, 1_000_000, 4_000_000];

/** They overlap, and two of them send the same files. */
const UPSTREAMS = [
  { dialect: "nixos", priority: 10, part: 0.8 },
  { dialect: "nixos", priority: 20, part: 0.8 },
  { dialect: "attic", priority: 30, part: 0.5 },
] as const;

/** Time for which an upstream is up and down. */
const UP_MS = 20_000;
const DOWN_MS = 6_000;

/** Share of faulty answers. */
const FAULTY_PART = 0.25;
/** One silence within the header timeout of the soak's larder, and one beyond it. */
const SILENCES_MS = [200, 2_500];
/**
 * Deno's HTTP client returns one chunk in each turn of the fetch Worker's event loop. With 80
 * downloads in flight that were 50 bytes a second.
 */
const BYTE_CHUNKS = 200;

/** Dice of this name in the soak of a seed: the same give the same numbers. */
export function diceOf(seed: number, name: string): SeededDice {
  const mix = (state: number, letter: string) =>
    Math.imul(state ^ letter.charCodeAt(0), 0x01000193);
  return new SeededDice([...name].reduce(mix, seed | 0));
}

/** One of the items, in proportion to its weight. */
export function weighted<Item extends { readonly weight: number }>(
  dice: SeededDice,
  items: readonly Item[],
): Item {
  let left = dice.fraction() * items.reduce((sum, { weight }) => sum + weight, 0);
  return items.find(({ weight }) => (left -= weight) < 0) ?? dice.pick(items);
}

/** Upstreams that fail. */
export class World implements AsyncDisposable {
  readonly objects: readonly WorldObject[];
  readonly upstreams: readonly FakeUpstream[];
  readonly #mended = new AbortController();
  #failing: Promise<unknown> = Promise.resolve();

  private constructor(objects: readonly WorldObject[], upstreams: readonly FakeUpstream[]) {
    this.objects = objects;
    this.upstreams = upstreams;
  }

  static async open(dice: SeededDice): Promise<World> {
    const objects: StoreObject[] = [];
    for (let seed = 1; seed <= OBJECTS; seed++) {
      const size = dice.pick(SIZES) + dice.below(1_000);
      const references = objects.slice(-dice.below(4));
      objects.push(makeStoreObject({ name: `soak-${seed}`, size, seed, references }));
    }
    const upstreams = await Promise.all(UPSTREAMS.map(({ dialect, priority, part }) => {
      const own = objects.filter(() => dice.happens(part));
      return fakeUpstream({ dialect, priority, objects: own, stored: true });
    }));
    const all: WorldObject[] = [];
    for (const object of objects) {
      // Now, as clients would have to wait later.
      const files = await Promise.all(upstreams.map((upstream) => upstream.narFileOf(object)));
      const digests = files.map(({ bytes }) => createHash("sha256").update(bytes).digest("hex"));
      all.push({ object, files: new Map(), right: new Set(digests) });
    }
    return new World(all, upstreams);
  }

  /** Breaks answers, and stops and restarts upstreams, until `mend`. */
  fail(dice: SeededDice): void {
    for (const upstream of this.upstreams) {
      upstream.breakNarinfo(chosenFrom(NARINFO_CHOICES, dice));
      upstream.breakNar(chosenFrom(NAR_CHOICES, dice));
    }
    this.#failing = Promise.all(this.upstreams.map((upstream) => this.#comeAndGo(upstream, dice)));
  }

  async mend(): Promise<void> {
    this.#mended.abort();
    await this.#failing;
    for (const upstream of this.upstreams) {
      upstream.mend();
      await upstream.start();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.mend();
    await Promise.all(this.upstreams.map((one) => one[Symbol.asyncDispose]()));
  }

  async #comeAndGo(upstream: FakeUpstream, dice: SeededDice): Promise<void> {
    const { signal } = this.#mended;
    const sleep = (ms: number) => clock.pause(ms, signal).catch(() => undefined);
    while (!signal.aborted) {
      await sleep(dice.below(2 * UP_MS));
      if (signal.aborted) return;
      await upstream.stop();
      await sleep(dice.below(2 * DOWN_MS));
      await upstream.start();
    }
  }
}

interface Choice {
  readonly weight: number;
  readonly make: (dice: SeededDice, fileBytes: number) => faults.Fault;
}

const BEFORE_THE_BODY: readonly Choice[] = [
  { weight: 3, make: () => faults.status(500) },
  { weight: 2, make: () => faults.status(404) },
  { weight: 3, make: () => faults.status(429, { "retry-after": "0" }) },
  { weight: 2, make: () => faults.status(503, { "retry-after": "1" }) },
  { weight: 3, make: () => faults.dropped() },
  { weight: 2, make: (dice) => faults.heldUntil(clock.pause(dice.pick(SILENCES_MS))) },
];

const NARINFO_CHOICES: readonly Choice[] = [
  ...BEFORE_THE_BODY,
  { weight: 1, make: () => garbage() },
  { weight: 1, make: () => badSignature() },
  { weight: 1, make: () => wrongFileSize() },
  { weight: 1, make: (dice) => faults.cutAfter(dice.below(300)) },
  { weight: 1, make: () => faults.inByteChunks() },
];

const NAR_CHOICES: readonly Choice[] = [
  ...BEFORE_THE_BODY,
  { weight: 8, make: (dice, bytes) => faults.cutAfter(dice.below(bytes)) },
  {
    weight: 3,
    make: (dice, bytes) => faults.inOrder(faults.chunked(), faults.cutAfter(dice.below(bytes))),
  },
  { weight: 2, make: (dice, bytes) => faults.endAfter(dice.below(bytes)) },
  { weight: 1, make: (dice, bytes) => faults.corruptByteAt(dice.below(bytes)) },
  { weight: 1, make: () => faults.followedBy(new Uint8Array(10)) },
  { weight: 1, make: () => faults.inByteChunks(BYTE_CHUNKS) },
  { weight: 4, make: (dice, bytes) => faults.stallAfter(dice.below(bytes), stall(dice)) },
];

/** A quarter of the stalls last beyond the idle timeout of the soak's larder. */
function stall(dice: SeededDice): Promise<void> {
  return clock.pause(dice.happens(1 / 4) ? 4_000 : dice.below(1_000));
}

function chosenFrom(choices: readonly Choice[], dice: SeededDice): faults.Fault {
  return (answer: Answer, exchange: Exchange): ReturnType<faults.Fault> => {
    if (!dice.happens(FAULTY_PART)) return answer;
    const bytes = answer.body instanceof Uint8Array ? answer.body.length : 1;
    return weighted(dice, choices).make(dice, bytes)(answer, exchange) ?? DROP;
  };
}
