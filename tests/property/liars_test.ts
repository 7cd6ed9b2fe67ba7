import fc from "fast-check";
import { LiarsWorld, NAR_LIES, NARINFO_LIES, OBJECTS } from "../support/liars_world.ts";
import { tryForTime } from "../support/property.ts";
import type { StoreObject } from "../support/store_object.ts";

const object = fc.nat(OBJECTS.length - 1);

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("lie" as const),
      liar: fc.nat(1),
      object,
      narinfo: fc.constantFrom(...NARINFO_LIES),
      nar: fc.constantFrom(...NAR_LIES),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("narinfo" as const), object }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("nar" as const),
      given: fc.nat(1_000),
      from: fc.option(fc.double({ min: 0, max: 1.2, noNaN: true }), { nil: undefined }),
      head: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("evict" as const),
      object,
      what: fc.constantFrom("narinfo" as const, "nar" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("move" as const), object }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("spread" as const), object }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
);

const stories = fc.tuple(
  fc.constantFrom("nixos" as const, "attic" as const, "harmonia" as const, "cachix" as const),
  fc.tuple(fc.constantFrom(1, 40, 50), fc.constantFrom(1, 40, 50)),
  fc.array(step, { maxLength: 30, size: "max" }),
);

Deno.test("liars: whatever they claim and send, clients get the announced bytes, or a 404", () =>
  tryForTime(stories, async ([dialect, priorities, steps]) => {
    await using world = await LiarsWorld.open(dialect, priorities);
    for (const step of steps) await take(world, step);
    await world.assertHealed();
  }));

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

async function take(world: LiarsWorld, step: Step): Promise<void> {
  const object = OBJECTS["object" in step ? step.object : 0] as StoreObject;
  switch (step.kind) {
    case "lie":
      return world.lie(step.liar, object, step);
    case "narinfo":
      return void await world.narinfo(object);
    case "nar": {
      const given = world.given[world.given.length === 0 ? 0 : step.given % world.given.length];
      if (given !== undefined) await world.nar(given, step);
      return;
    }
    case "evict":
      return await world.evict(object, step.what);
    case "move":
      return world.move(object);
    case "spread":
      return world.spread(object);
    case "restart":
      return await world.restart();
  }
}
