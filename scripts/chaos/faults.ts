import { clock } from "../../src/runtime/current.ts";
import type { PostgresServer } from "../../tests/support/postgres.ts";
import type { S3Fault, S3FaultProxy } from "../../tests/support/s3_fault_proxy.ts";
import type { Dice } from "../soak/dice.ts";
import { type Cluster, WELL } from "./cluster.ts";
import type { Health } from "./upstream_requests.ts";

/** The time between two faults, and the longest time of one. */
const CALM_MS = 8_000;
const FAULT_MAX_MS = 8_000;

/** Larders probe Redis every second, and wait for the database up to eight. */
const FOUND_AGAIN_MS = 10_000;

const SLOW_MAX_MS = 3_000;
const CUT_MAX_BYTES = 500_000;

/** Larders read their stored files, but cannot know of each other. */
const UNLOCKED: Health = { isShared: false, isReadable: true };
const UNREADABLE: Health = { isShared: false, isReadable: false };

interface Fault {
  readonly name: string;
  readonly weight: number;
  readonly health: Health;
  run(): Promise<void>;
}

/** Harms one part of the cluster after the other until `isOver`. Resolves to their counts. */
export async function harm(
  cluster: Cluster,
  dice: Dice,
  isOver: () => boolean,
): Promise<ReadonlyMap<string, number>> {
  const faults = faultsOf(cluster, dice);
  const counts = new Map<string, number>();
  while (!isOver()) {
    await clock.pause(dice.below(2 * CALM_MS));
    const fault = dice.weighted(faults);
    cluster.health = fault.health;
    await fault.run();
    if (fault.health !== WELL) await clock.pause(FOUND_AGAIN_MS);
    cluster.health = WELL;
    counts.set(fault.name, (counts.get(fault.name) ?? 0) + 1);
  }
  return counts;
}

function faultsOf(cluster: Cluster, dice: Dice): readonly Fault[] {
  const { redis, postgres, s3, replicas } = cluster;
  const one = () => dice.pick(replicas);
  const aWhile = () => clock.pause(dice.below(FAULT_MAX_MS));
  const restart = async (signal: Deno.Signal) => {
    const replica = one();
    await cluster.end(replica, signal);
    await clock.pause(dice.below(2_000));
    await cluster.start(replica);
  };
  return [
    { name: "replica killed", weight: 4, health: WELL, run: () => restart("SIGKILL") },
    { name: "replica restarted", weight: 2, health: WELL, run: () => restart("SIGTERM") },
    {
      name: "replica paused",
      weight: 3,
      health: WELL,
      async run() {
        const { larder } = one();
        larder?.kill("SIGSTOP");
        await aWhile();
        larder?.kill("SIGCONT");
      },
    },
    {
      name: "replicas apart",
      weight: 3,
      health: WELL,
      async run() {
        const { proxy } = one();
        proxy.isRefusing = true;
        proxy.cutAll();
        await aWhile();
        proxy.isRefusing = false;
      },
    },
    {
      name: "Redis frozen",
      weight: 2,
      health: UNLOCKED,
      async run() {
        redis.freeze();
        await aWhile();
        redis.wake();
      },
    },
    {
      name: "Redis killed",
      weight: 1,
      health: UNLOCKED,
      async run() {
        await redis.kill();
        await clock.pause(dice.below(2_000));
        await redis.start();
      },
    },
    ...postgres === undefined ? [] : postgresFaults(postgres, dice),
    ...s3 === undefined ? [] : s3Faults(s3, dice),
  ];
}

function postgresFaults(postgres: PostgresServer, dice: Dice): readonly Fault[] {
  return [
    {
      ...{ name: "PostgreSQL restarted", weight: 1, health: UNLOCKED },
      async run() {
        postgres.stop(dice.pick(["fast", "immediate"]));
        await clock.pause(dice.below(1_000));
        postgres.start();
      },
    },
    {
      ...{ name: "PostgreSQL frozen", weight: 1, health: UNREADABLE },
      async run() {
        postgres.freeze();
        await clock.pause(dice.below(FAULT_MAX_MS));
        postgres.wake();
      },
    },
  ];
}

/** Faults of S3, each of some requests alone: larder tries again. */
function s3Faults(s3: S3FaultProxy, dice: Dice): readonly Fault[] {
  const kinds: Readonly<Record<string, () => S3Fault>> = {
    "S3 refusing": () => ({ status: 503, code: "SlowDown" }),
    "S3 slow": () => ({ holdUntil: clock.pause(dice.below(SLOW_MAX_MS)) }),
    "S3 cutting": () => ({ cutAfter: dice.below(CUT_MAX_BYTES) }),
    "S3 losing answers": () => "lose the answer",
  };
  return Object.entries(kinds).map(([name, fault]) => ({
    ...{ name, weight: 1, health: UNREADABLE },
    async run() {
      const share = dice.part();
      s3.fault = () => dice.part() < share ? fault() : undefined;
      await clock.pause(dice.below(FAULT_MAX_MS));
      s3.fault = () => undefined;
    },
  }));
}
