import { clock } from "../../src/runtime/current.ts";
import type { SeededDice } from "../../tests/simulation/seeded_dice.ts";
import type { S3Fault } from "../../tests/support/s3_fault_proxy.ts";
import type { Cluster } from "./cluster.ts";
import { weighted } from "./world.ts";

/** The time between two faults is up to twice this. */
const CALM_MS = 10_000;
const FAULT_MAX_MS = 8_000;
const AWAY_MAX_MS = 2_000;
const LOOK_MS = 1_000;
const SLOW_MAX_MS = 3_000;
const CUT_MAX_BYTES = 500_000;

/** Something that breaks, for at most a time, and is whole again. */
interface Harm {
  readonly name: string;
  readonly weight: number;
  readonly maxMs: number;
  /** Breaks it, and returns how to mend it. */
  readonly begin: () => (() => unknown) | Promise<() => unknown>;
}

/** Harms a larder, or what several of them share, until `isOver`. Resolves to the counts. */
export async function harm(
  cluster: Cluster,
  dice: SeededDice,
  isOver: () => boolean,
): Promise<ReadonlyMap<string, number>> {
  const harms = harmsOf(cluster, dice);
  const counts = new Map<string, number>();
  for (;;) {
    for (let ms = dice.below(2 * CALM_MS); ms > 0 && !isOver(); ms -= LOOK_MS) {
      await clock.pause(LOOK_MS);
    }
    if (isOver()) return counts;
    const { name, maxMs, begin } = weighted(dice, harms);
    const mend = await begin();
    await clock.pause(dice.below(maxMs));
    await mend();
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
}

function harmsOf(cluster: Cluster, dice: SeededDice): readonly Harm[] {
  const { members, neighbours: { redis, postgres, s3 } } = cluster;
  const away = (name: string, weight: number, begin: Harm["begin"]): Harm => (
    { name, weight, maxMs: AWAY_MAX_MS, begin }
  );
  const ill = (name: string, weight: number, begin: Harm["begin"]): Harm => (
    { name, weight, maxMs: FAULT_MAX_MS, begin }
  );
  const restart = (signal: Deno.Signal) => async () => {
    const member = dice.pick(members);
    await cluster.end(member, signal);
    return () => cluster.start(member);
  };
  return [
    away("larder killed", 4, restart("SIGKILL")),
    away("larder restarted", 2, restart("SIGTERM")),
    ill("larder paused", 3, () => {
      const { larder } = dice.pick(members);
      larder?.kill("SIGSTOP");
      return () => larder?.kill("SIGCONT");
    }),
    ...redis === undefined ? [] : [
      ill("larders apart", 3, () => {
        const { proxy } = dice.pick(members);
        proxy.isRefusing = true;
        proxy.cutAll();
        return () => proxy.isRefusing = false;
      }),
      ill("Redis frozen", 2, () => {
        redis.freeze();
        return () => redis.wake();
      }),
      away("Redis killed", 1, async () => {
        await redis.kill();
        return () => redis.start();
      }),
    ],
    ...postgres === undefined ? [] : [
      away("PostgreSQL restarted", 1, () => {
        postgres.stop(dice.pick(["fast", "immediate"]));
        return () => postgres.start();
      }),
      ill("PostgreSQL frozen", 1, () => {
        postgres.freeze();
        return () => postgres.wake();
      }),
    ],
    ...s3 === undefined ? [] : Object.entries(s3Faults(dice)).map(([name, fault]) =>
      // Each of some requests alone: larder tries again.
      ill(name, 1, () => {
        const share = dice.fraction();
        s3.fault = () => dice.happens(share) ? fault() : undefined;
        return () => s3.fault = () => undefined;
      })
    ),
  ];
}

function s3Faults(dice: SeededDice): Readonly<Record<string, () => S3Fault>> {
  return {
    "S3 refusing": () => ({ status: 503, code: "SlowDown" }),
    "S3 slow": () => ({ holdUntil: clock.pause(dice.below(SLOW_MAX_MS)) }),
    "S3 cutting": () => ({ cutAfter: dice.below(CUT_MAX_BYTES) }),
    "S3 losing answers": () => "lose the answer",
  };
}
