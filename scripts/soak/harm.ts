import { clock } from "../../src/runtime/current.ts";
import type { PostgresServer } from "../../tests/support/postgres.ts";
import type { S3Fault, S3FaultProxy } from "../../tests/support/s3_fault_proxy.ts";
import type { Cluster, SharedNeighbours } from "./cluster.ts";
import type { Dice } from "./dice.ts";

/** The time between two faults is up to twice this. */
const CALM_MS = 10_000;
const FAULT_MAX_MS = 8_000;
const AWAY_MAX_MS = 2_000;
const LOOK_MS = 1_000;

const SLOW_MAX_MS = 3_000;
const CUT_MAX_BYTES = 500_000;

interface Harm {
  readonly name: string;
  readonly weight: number;
  run(): Promise<void>;
}

/** Harms a larder, or what several of them share, until `isOver`. Resolves to the counts. */
export async function harm(
  cluster: Cluster,
  dice: Dice,
  isOver: () => boolean,
): Promise<ReadonlyMap<string, number>> {
  const harms = harmsOf(cluster, dice);
  const counts = new Map<string, number>();
  for (;;) {
    for (let ms = dice.below(2 * CALM_MS); ms > 0 && !isOver(); ms -= LOOK_MS) {
      await clock.pause(LOOK_MS);
    }
    if (isOver()) return counts;
    const { name, run } = dice.weighted(harms);
    await run();
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
}

function harmsOf(cluster: Cluster, dice: Dice): readonly Harm[] {
  const { members, neighbours } = cluster;
  const restart = async (signal: Deno.Signal) => {
    const member = dice.pick(members);
    await cluster.end(member, signal);
    await clock.pause(dice.below(AWAY_MAX_MS));
    await cluster.start(member);
  };
  return [
    { name: "larder killed", weight: 4, run: () => restart("SIGKILL") },
    { name: "larder restarted", weight: 2, run: () => restart("SIGTERM") },
    {
      name: "larder paused",
      weight: 3,
      async run() {
        const { larder } = dice.pick(members);
        larder?.kill("SIGSTOP");
        await clock.pause(dice.below(FAULT_MAX_MS));
        larder?.kill("SIGCONT");
      },
    },
    ...neighbours === undefined ? [] : harmsOfShared(cluster, neighbours, dice),
  ];
}

function harmsOfShared(
  { members }: Cluster,
  { redis, postgres, s3 }: SharedNeighbours,
  dice: Dice,
): readonly Harm[] {
  return [
    {
      name: "larders apart",
      weight: 3,
      async run() {
        const { proxy } = dice.pick(members);
        proxy.isRefusing = true;
        proxy.cutAll();
        await clock.pause(dice.below(FAULT_MAX_MS));
        proxy.isRefusing = false;
      },
    },
    {
      name: "Redis frozen",
      weight: 2,
      async run() {
        redis.freeze();
        await clock.pause(dice.below(FAULT_MAX_MS));
        redis.wake();
      },
    },
    {
      name: "Redis killed",
      weight: 1,
      async run() {
        await redis.kill();
        await clock.pause(dice.below(AWAY_MAX_MS));
        await redis.start();
      },
    },
    ...postgres === undefined ? [] : harmsOfPostgres(postgres, dice),
    ...s3 === undefined ? [] : harmsOfS3(s3, dice),
  ];
}

function harmsOfPostgres(postgres: PostgresServer, dice: Dice): readonly Harm[] {
  return [
    {
      name: "PostgreSQL restarted",
      weight: 1,
      async run() {
        postgres.stop(dice.pick(["fast", "immediate"]));
        await clock.pause(dice.below(AWAY_MAX_MS));
        postgres.start();
      },
    },
    {
      name: "PostgreSQL frozen",
      weight: 1,
      async run() {
        postgres.freeze();
        await clock.pause(dice.below(FAULT_MAX_MS));
        postgres.wake();
      },
    },
  ];
}

/** Each of some requests alone: larder tries again. */
function harmsOfS3(s3: S3FaultProxy, dice: Dice): readonly Harm[] {
  const kinds: Readonly<Record<string, () => S3Fault>> = {
    "S3 refusing": () => ({ status: 503, code: "SlowDown" }),
    "S3 slow": () => ({ holdUntil: clock.pause(dice.below(SLOW_MAX_MS)) }),
    "S3 cutting": () => ({ cutAfter: dice.below(CUT_MAX_BYTES) }),
    "S3 losing answers": () => "lose the answer",
  };
  return Object.entries(kinds).map(([name, fault]) => ({
    name,
    weight: 1,
    async run() {
      const share = dice.part();
      s3.fault = () => dice.part() < share ? fault() : undefined;
      await clock.pause(dice.below(FAULT_MAX_MS));
      s3.fault = () => undefined;
    },
  }));
}
