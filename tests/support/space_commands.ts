import assert from "node:assert/strict";
import fc from "fast-check";
import type { Answer, Deed, Happened, SpaceModel } from "./space_model.ts";
import type { SpaceSystem } from "./space_system.ts";

/** The conditions of a step. */
export interface Weather {
  /** The upstream does not answer. */
  readonly isOff: boolean;
  /** The disk removes nothing. */
  readonly isStuck: boolean;
  /** The first NAR file that is fetched breaks off. */
  readonly breaks: boolean;
  /** The disk takes no growing file. */
  readonly isFull: boolean;
  /** Of the disk, in turns. */
  readonly slowness: number;
}

type Command = fc.AsyncCommand<SpaceModel, SpaceSystem>;
type Answered = readonly (readonly [Deed, Answer])[];

const WEIGHTS: Readonly<Record<Deed["kind"], number>> = {
  "fetch": 12,
  "narinfo": 2,
  "pin": 3,
  "unpin": 2,
  "delete": 1,
  "delete nar": 1,
  "evict": 2,
};
export const FINE: Weather = {
  isOff: false,
  isStuck: false,
  breaks: false,
  isFull: false,
  slowness: 1,
};

/** Calls of ports after which a process dies: an eviction or a download makes some dozens. */
const STEPS_MAX = 60;

const deed: fc.Arbitrary<Deed> = fc.record({
  kind: fc.oneof(
    ...Object.entries(WEIGHTS).map(([kind, weight]) => (
      { weight, arbitrary: fc.constant(kind as Deed["kind"]) }
    )),
  ),
  // Some far more often than others, so that deeds meet.
  path: fc.oneof(fc.nat({ max: 2 }), fc.nat({ max: 11 })),
  // A download takes some two dozen turns.
  after: fc.oneof(fc.nat({ max: 8 }), fc.nat({ max: 40 })),
  member: fc.nat({ max: 1 }),
});
const weather: fc.Arbitrary<Weather> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Partial<Weather>>(
      { isOff: true },
      { isStuck: true },
      { breaks: true },
      { isFull: true },
    ),
  },
  { weight: 3, arbitrary: fc.record({ slowness: fc.integer({ min: 2, max: 20 }) }) },
).map((bad) => ({ ...FINE, ...bad }));
const deeds = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(deed) },
  { weight: 2, arbitrary: fc.array(deed, { minLength: 2, maxLength: 4 }) },
);
const steps = fc.integer({ min: 1, max: STEPS_MAX });
const lives = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.array(steps, { minLength: 1, maxLength: 2 }) },
);

const step = fc.tuple(deeds, weather).map(([deeds, weather]) => new Step(deeds, weather));
/** Any member; where there are fewer, another one of them. */
const victim = fc.nat({ max: 2 });
const crash = fc.record({ deeds, weather, after: steps, lives, victim })
  .map((parts) => new Crash(parts));
const pause = fc.record({ deeds, after: steps, sleeper: victim })
  .map((parts) => new Pause(parts));
const restart = fc.constantFrom(0.5, 1, 1, 2).map((factor) => new Restart(factor));

/**
 * Fetch, use, pin, unpin, delete, evict, crash, pause, restart: one after the other or side by
 * side. Each kind is as likely as it is often here; a start takes as long as some ten deeds.
 */
export const SPACE_COMMANDS: fc.Arbitrary<Command>[] = [
  ...Array.from({ length: 12 }, () => step),
  ...Array.from({ length: 2 }, () => crash),
  pause,
  restart,
];

/** Some deeds side by side; then none of them is running any more. */
export class Step implements Command {
  readonly #deeds: readonly Deed[];
  readonly #weather: Weather;

  constructor(deeds: readonly Deed[], weather: Weather) {
    this.#deeds = deeds;
    this.#weather = weather;
  }

  check(): boolean {
    return true;
  }

  async run(model: SpaceModel, system: SpaceSystem): Promise<void> {
    system.tick();
    const { isOff, isStuck, breaks } = this.#weather;
    setWeather(system, this.#weather);
    const deeds = await perform(this.#deeds, system);
    await system.idle();
    setWeather(system, FINE);
    if (isStuck) await system.running.space.refresh();
    await system.idle();
    const before = { stored: model.stored, kept: model.kept };
    const isAsking = deeds.every(([{ kind }]) => kind === "fetch" || kind === "narinfo");
    if (isOff && isAsking) {
      assert.deepEqual([...system.watch.nars], [], "a file that nobody sends evicts nothing");
    }
    await judge(model, system, { deeds, isOff, crashed: false });
    if (!isOff && !breaks) expectServed(deeds);
    const [only] = deeds;
    if (deeds.length > 1 || only === undefined || isStuck || breaks) return;
    expect(only, model, { before, weather: this.#weather, system });
  }

  toString(): string {
    return `[${textOf(this.#deeds)}${weatherText(this.#weather)}]`;
  }
}

export interface CrashParts {
  readonly deeds: readonly Deed[];
  readonly weather: Weather;
  /** It dies at this step, or when all is done. */
  readonly after: number;
  /** The starts after it that die too, and at which of their steps. */
  readonly lives: readonly number[];
  /** The member that dies, where there are several. */
  readonly victim: number;
}

/** A crash amid some deeds, and perhaps in the starts after it. */
export class Crash implements Command {
  readonly #parts: CrashParts;
  #wasTooLate = false;

  constructor(parts: CrashParts) {
    this.#parts = parts;
  }

  check(): boolean {
    return true;
  }

  /** True when all was done before it could die. */
  get wasTooLate(): boolean {
    return this.#wasTooLate;
  }

  async run(model: SpaceModel, system: SpaceSystem): Promise<void> {
    system.tick();
    const { after, lives, weather, victim } = this.#parts;
    setWeather(system, weather);
    const { life } = system.member(victim).larder;
    life.endAfter(after);
    const deeds = await perform(this.#parts.deeds, system);
    // Its death may come in work that goes on behind the answers.
    if (!life.isOver) await system.member(victim).idle();
    this.#wasTooLate = !life.isOver;
    await system.crash(victim);
    setWeather(system, { ...FINE, slowness: weather.slowness });
    // The members left settle its unfinished work, or the next start does, or both at once.
    await Promise.all([...system.living.map((member) => member.runChores()), system.start(lives)]);
    setWeather(system, FINE);
    await system.idle();
    await judge(model, system, { deeds, isOff: weather.isOff, crashed: true });
  }

  toString(): string {
    const { deeds, weather, after, lives, victim } = this.#parts;
    const life = [after, ...lives].join(", ");
    return `crash([${textOf(deeds)}${weatherText(weather)}] @${victim} at ${life})`;
  }
}

interface PauseParts {
  readonly deeds: readonly Deed[];
  /** It sleeps from this step on. */
  readonly after: number;
  readonly sleeper: number;
}

/** A member that sleeps amid some deeds, and wakes when the others have taken it for dead. */
class Pause implements Command {
  readonly #parts: PauseParts;

  constructor(parts: PauseParts) {
    this.#parts = parts;
  }

  check(): boolean {
    return true;
  }

  async run(model: SpaceModel, system: SpaceSystem): Promise<void> {
    system.tick();
    const { after, sleeper } = this.#parts;
    const work = perform(this.#parts.deeds, system);
    await system.sleep(sleeper, { after, work });
    const deeds = await work;
    await system.idle();
    await judge(model, system, { deeds, isOff: false, crashed: true });
  }

  toString(): string {
    const { deeds, after, sleeper } = this.#parts;
    return `pause([${textOf(deeds)}] @${sleeper} at ${after})`;
  }
}

/** An orderly end and a new start, with another limit perhaps. */
class Restart implements Command {
  readonly #factor: number;

  constructor(factor: number) {
    this.#factor = factor;
  }

  check(): boolean {
    return true;
  }

  async run(model: SpaceModel, system: SpaceSystem): Promise<void> {
    system.tick();
    await system.stop();
    system.limitBytes = Math.max(50_000, Math.min(300_000, system.limitBytes * this.#factor));
    await system.start();
    await system.idle();
    await judge(model, system, { deeds: [], isOff: false, crashed: false });
  }

  toString(): string {
    return `restart(limit × ${this.#factor})`;
  }
}

function setWeather(
  { disk, upstreams }: SpaceSystem,
  { isOff, isStuck, breaks, isFull, slowness }: Weather,
): void {
  Object.assign(disk, { isStuck, isFull, slowness });
  for (const upstream of upstreams) Object.assign(upstream, { isOff, breaksNext: breaks });
}

function weatherText(weather: Weather): string {
  return Object.entries(weather)
    .filter(([name, value]) => value !== FINE[name as keyof Weather])
    .map(([name, value]) => value === true ? ` ${name}` : ` ${name} ${value}`)
    .join("");
}

async function perform(deeds: readonly Deed[], system: SpaceSystem): Promise<Answered> {
  const { length } = system.world.paths;
  return await Promise.all(deeds.map(async (deed) => {
    const here = { ...deed, path: deed.path % length };
    return [here, await system.perform(here)] as const;
  }));
}

async function judge(
  model: SpaceModel,
  system: SpaceSystem,
  { deeds, isOff, crashed }: Pick<Happened, "deeds" | "isOff" | "crashed">,
): Promise<void> {
  const { paths: evictedPaths, nars: evictedNars } = system.watch;
  const happened = { deeds, isOff, crashed, atMs: system.nowMs, evictedPaths, evictedNars };
  const problems = [...model.next(happened, await system.seen()), ...await system.audit()];
  const { protectedBytes } = await system.running.metadata.stock();
  if (await system.isSettled() && protectedBytes !== model.protectedBytes()) {
    problems.push(`${protectedBytes} bytes are protected, not ${model.protectedBytes()}`);
  }
  const { usedBytes } = system.running.space.budget;
  if (usedBytes > system.limitBytes && usedBytes > model.protectedBytes()) {
    problems.push(`${usedBytes} bytes are used, more than the limit and than what pins hold`);
  }
  assert.deepEqual(problems, []);
}

/** Whatever crosses it: a narinfo is served, and leads to its NAR. */
function expectServed(deeds: Answered): void {
  for (const [{ kind, path }, answer] of deeds) {
    if (kind !== "fetch") continue;
    assert.deepEqual(answer, { narinfo: true, nar: true }, `path ${path} is served`);
  }
}

/** Where nothing crosses it, stored paths are served, and fetched ones are kept if they fit. */
function expect(
  [deed, answer]: Answered[number],
  model: SpaceModel,
  { before, weather: { isOff, isFull }, system }: {
    readonly before: Pick<SpaceModel, "stored" | "kept">;
    readonly weather: Weather;
    readonly system: SpaceSystem;
  },
): void {
  const { kind, path } = deed;
  const { name, bytes, isSizeTold } = model.world.narOf(path);
  const isHere = before.stored.has(path) && before.kept.has(name);
  if (isHere) expectServed([[deed, answer]]);
  if (kind === "fetch" && !isOff && !isFull && !isHere) {
    const needed = isSizeTold ? bytes.length : Math.ceil(bytes.length * 9 / 8) + 65_536;
    const left = system.limitBytes - model.protectedBytes();
    const own = model.kept.has(name) ? bytes.length : 0;
    assert.ok(model.kept.has(name) || needed > left - own, `path ${path} fits and is kept`);
  }
  if (kind === "evict" && answer.done === false) {
    assert.equal(system.disk.bytes, model.protectedBytes(), "only protected entries are left");
  }
}

function textOf(deeds: readonly Deed[]): string {
  return deeds.map(({ kind, path, after, member }) => `${kind} ${path} +${after} @${member ?? 0}`)
    .join(" | ");
}
