import { Crash, FINE, Step } from "../support/space_commands.ts";
import { SmallWorld } from "../support/small_world.ts";
import { type Deed, SpaceModel } from "../support/space_model.ts";
import { SpaceSystem } from "../support/space_system.ts";

/** 0 → 1 → 2 → 0, the last two with one NAR file; 3 and 4 stand alone, 5 shares that of 0. */
const WORLD = new SmallWorld([
  { references: [1], nar: 0 },
  { references: [2], nar: 1 },
  { references: [0, 2], nar: 1 },
  { references: [], nar: 3 },
  { references: [13], nar: 7 },
  { references: [], nar: 0 },
]);
/** A limit with room for all, and one that is nearly full. */
const [AMPLE_BYTES, TIGHT_BYTES] = [300_000, 130_000];

interface Scene {
  readonly deeds: readonly Deed[];
  /** Of the disk: it makes deeds meet. */
  readonly slowness: number;
  /** Default: tight. */
  readonly limitBytes?: number;
}

/** The deeds that cross each other while a member dies. */
const SCENES: Readonly<Record<string, Scene>> = {
  "a file is fetched": { deeds: [deed("fetch", 4)], slowness: 2 },
  "a file is evicted and fetched anew": {
    deeds: [deed("evict", 0), deed("fetch", 3, 8)],
    slowness: 25,
    limitBytes: AMPLE_BYTES,
  },
  "a file is deleted and fetched anew": {
    deeds: [deed("delete", 3), deed("fetch", 3, 5)],
    slowness: 25,
    limitBytes: AMPLE_BYTES,
  },
  "space is made for a file, and a pin comes": {
    deeds: [deed("fetch", 4), deed("pin", 2, 3)],
    slowness: 4,
  },
  "a pin goes while eviction runs": { deeds: [deed("unpin", 0), deed("evict", 0, 2)], slowness: 3 },
  "a shared file is deleted": {
    deeds: [deed("delete", 5), deed("delete", 0), deed("fetch", 5, 9)],
    slowness: 3,
  },
  "a pinned path is deleted and comes back": {
    deeds: [deed("delete", 1), deed("fetch", 2, 6)],
    slowness: 5,
  },
};

for (const [name, scene] of Object.entries(SCENES)) {
  Deno.test(`space: ${name}; whenever it dies, the next start finds everything right`, () => {
    return everyDeath(scene);
  });
}

/** Plays the same scene again and again, with a death one step later each time. */
async function everyDeath(
  { deeds, slowness, limitBytes = TIGHT_BYTES }: Scene,
): Promise<void> {
  for (let after = 1, isOver = false; !isOver; after++) {
    await using system = new SpaceSystem(WORLD, limitBytes);
    await system.start();
    const model = new SpaceModel(WORLD);
    const step = (deed: Deed) => new Step([deed], FINE).run(model, system);
    for (const path of [3, 5, 2, 1, 0]) await step(deed("fetch", path));
    await step(deed("pin", 0));
    const crash = new Crash({ deeds, weather: { ...FINE, slowness }, after, lives: [], victim: 0 });
    try {
      await crash.run(model, system);
      await step(deed("fetch", 4));
      await step(deed("evict", 0));
    } catch (cause) {
      throw new Error(`Cannot take ${crash}`, { cause });
    }
    isOver = crash.wasTooLate;
  }
}

function deed(kind: Deed["kind"], path: number, after = 0): Deed {
  return { kind, path, after };
}
