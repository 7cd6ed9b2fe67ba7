import type { NarName } from "../../src/nix/nar_name.ts";
import type { SmallWorld } from "./small_world.ts";

/** A request to the cache. Paths are numbers of the world. */
export interface Deed {
  readonly kind: "fetch" | "narinfo" | "pin" | "unpin" | "delete" | "delete nar" | "evict";
  readonly path: number;
  /** Begins after so many turns. */
  readonly after: number;
  /** The member that gets it, where there are two; default: the first. */
  readonly member?: number;
}

/** The answer to a deed; empty where no member heard it. */
export interface Answer {
  readonly narinfo?: boolean;
  readonly nar?: boolean;
  readonly done?: boolean;
}

/** The state that shows from outside once no work is running. */
export interface Seen {
  /** Stored paths with their last use. */
  readonly stored: ReadonlyMap<number, number>;
  readonly pins: readonly number[];
  readonly kept: ReadonlySet<NarName>;
}

/** How a step went. */
export interface Happened {
  readonly deeds: readonly (readonly [Deed, Answer])[];
  readonly atMs: number;
  readonly isOff: boolean;
  readonly crashed: boolean;
  readonly evictedPaths: ReadonlySet<number>;
  readonly evictedNars: ReadonlySet<NarName>;
}

/** The state that the cache must hold. After crossing deeds or a crash, several are right. */
export class SpaceModel implements Seen {
  readonly world: SmallWorld;
  stored: ReadonlyMap<number, number> = new Map();
  pins: readonly number[] = [];
  kept: ReadonlySet<NarName> = new Set();

  constructor(world: SmallWorld) {
    this.world = world;
  }

  /** Takes over the seen state; returns its problems. */
  next(happened: Happened, seen: Seen): readonly string[] {
    const problems = [
      ...this.#paths(happened, seen),
      ...this.#uses(happened, seen),
      ...this.#pins(happened, seen),
      ...this.#refusals(happened),
      ...this.#files(happened, seen),
    ];
    ({ stored: this.stored, pins: this.pins, kept: this.kept } = seen);
    return problems;
  }

  /** Bytes that are kept and may not go. */
  protectedBytes(): number {
    const closure = this.world.closure(this.pins, this.stored);
    const paths = [...this.stored.keys()].filter((path) => closure.has(path));
    const nars = new Set(paths.map((path) => this.world.narOf(path)));
    return [...nars].filter(({ name }) => this.kept.has(name))
      .reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  #paths({ deeds, isOff, evictedPaths }: Happened, seen: Seen): readonly string[] {
    const fetched = those(deeds, isFetch);
    const learned = those(deeds, (deed, { narinfo }) => isFetch(deed) && narinfo === true);
    const deleted = those(deeds, ({ kind }) => kind === "delete");
    const surely = those(deeds, ({ kind }, { done }) => kind === "delete" && done === true);
    const least = [...this.stored.keys(), ...learned].filter((path) =>
      !evictedPaths.has(path) && !deleted.has(path)
    );
    const lost = least.filter((path) => !seen.stored.has(path)).map((path) => `lost path ${path}`);
    const most = (path: number) =>
      (fetched.has(path) && !isOff) ||
      (this.stored.has(path) &&
        (fetched.has(path) || !(evictedPaths.has(path) || surely.has(path))));
    const more = [...seen.stored.keys()].filter((path) => !most(path));
    return [...lost, ...more.map((path) => `path ${path} is there`)];
  }

  /** A crash may forget some; nothing else may. */
  #uses({ deeds, atMs, crashed }: Happened, seen: Seen): readonly string[] {
    const served = those(deeds, (deed, { narinfo }) => isFetch(deed) && narinfo === true);
    const askedNars = those(deeds, ({ kind }, { narinfo }) => kind === "fetch" && narinfo === true);
    const nars = new Set([...askedNars].map((path) => this.world.narOf(path)));
    return [...seen.stored].flatMap(([path, usedAtMs]) => {
      const before = this.stored.get(path) ?? atMs;
      const isUsed = served.has(path) || nars.has(this.world.narOf(path));
      const expected = isUsed ? atMs : before;
      const isRight = crashed ? usedAtMs <= atMs : usedAtMs === expected;
      return isRight ? [] : [`path ${path} was used at ${expected}, not ${usedAtMs}`];
    });
  }

  #pins({ deeds }: Happened, seen: Seen): readonly string[] {
    const asked = those(deeds, ({ kind }) => kind === "pin");
    const pinned = those(deeds, ({ kind }, { done }) => kind === "pin" && done === true);
    const unpinned = those(deeds, ({ kind }) => kind === "unpin");
    const surely = those(deeds, ({ kind }, { done }) => kind === "unpin" && done === true);
    const lost = [...this.pins, ...pinned]
      .filter((path) => !unpinned.has(path) && !seen.pins.includes(path));
    const more = seen.pins.filter((path) =>
      !asked.has(path) && (!this.pins.includes(path) || surely.has(path))
    );
    return [...lost.map((path) => `lost pin ${path}`), ...more.map((path) => `pin ${path} is set`)];
  }

  /** A path that stays stored can be pinned, one that is nowhere cannot. */
  #refusals({ deeds, evictedPaths }: Happened): readonly string[] {
    const mayGo = those(deeds, ({ kind }) => kind === "delete");
    const mayCome = those(deeds, isFetch);
    return deeds.flatMap(([{ kind, path }, { done }]) => {
      if (kind !== "pin" || this.pins.includes(path)) return [];
      const isStored = this.stored.has(path);
      const stays = isStored && !mayGo.has(path) && !evictedPaths.has(path);
      if (done === false && stays) return [`path ${path} could not be pinned`];
      return done === true && !isStored && !mayCome.has(path) ? [`pinned path ${path}`] : [];
    });
  }

  /** A path that was evicted, and came back, named no file in between. */
  #files({ deeds, evictedPaths, evictedNars }: Happened, seen: Seen): readonly string[] {
    const deleted = those(deeds, ({ kind }) => kind === "delete");
    const stays = [...this.stored.keys()].filter((path) => (
      seen.stored.has(path) && !deleted.has(path) && !evictedPaths.has(path)
    ));
    const named = new Set(stays.map((path) => this.world.narOf(path).name));
    const given = new Set([
      ...namesOf(this.world, deleted).filter((name) => !named.has(name)),
      ...namesOf(this.world, those(deeds, ({ kind }) => kind === "delete nar")),
    ]);
    return [...this.kept]
      .filter((name) => !evictedNars.has(name) && !given.has(name) && !seen.kept.has(name))
      .map((name) => `lost file ${name}`);
  }
}

function namesOf(world: SmallWorld, paths: Iterable<number>): readonly NarName[] {
  return [...paths].map((path) => world.narOf(path).name);
}

function isFetch({ kind }: Deed): boolean {
  return kind === "fetch" || kind === "narinfo";
}

function those(
  deeds: Happened["deeds"],
  are: (deed: Deed, answer: Answer) => boolean,
): ReadonlySet<number> {
  return new Set(deeds.filter(([deed, answer]) => are(deed, answer)).map(([{ path }]) => path));
}
