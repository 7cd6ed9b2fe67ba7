import { pause } from "../../src/base/pause.ts";
import type { Dice } from "../soak/dice.ts";
import type { Cluster } from "./cluster.ts";

/** The time between two faults, and the longest time of one. */
const CALM_MS = 8_000;
const FAULT_MAX_MS = 8_000;

/** Larders probe Redis every second, and wait for the database up to eight. */
const FOUND_AGAIN_MS = 10_000;

interface Fault {
  readonly name: string;
  readonly weight: number;
  /** True if locks and database go on. */
  readonly isOfLarders?: true;
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
    await pause(dice.below(2 * CALM_MS));
    const fault = dice.weighted(faults);
    cluster.isShared = fault.isOfLarders ?? false;
    await fault.run();
    if (!cluster.isShared) await pause(FOUND_AGAIN_MS);
    cluster.isShared = true;
    counts.set(fault.name, (counts.get(fault.name) ?? 0) + 1);
  }
  return counts;
}

function faultsOf(cluster: Cluster, dice: Dice): readonly Fault[] {
  const { redis, postgres, replicas } = cluster;
  const one = () => dice.pick(replicas);
  const aWhile = () => pause(dice.below(FAULT_MAX_MS));
  const restart = async (signal: Deno.Signal) => {
    const replica = one();
    await cluster.end(replica, signal);
    await pause(dice.below(2_000));
    await cluster.start(replica);
  };
  const restartPostgres: Fault = {
    name: "PostgreSQL restarted",
    weight: 1,
    async run() {
      postgres?.stop(dice.pick(["fast", "immediate"]));
      await pause(dice.below(1_000));
      postgres?.start();
    },
  };
  return [
    { name: "replica killed", weight: 4, isOfLarders: true, run: () => restart("SIGKILL") },
    { name: "replica restarted", weight: 2, isOfLarders: true, run: () => restart("SIGTERM") },
    {
      name: "replica paused",
      weight: 3,
      isOfLarders: true,
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
      isOfLarders: true,
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
      async run() {
        redis.freeze();
        await aWhile();
        redis.wake();
      },
    },
    {
      name: "Redis killed",
      weight: 1,
      async run() {
        await redis.kill();
        await pause(dice.below(2_000));
        await redis.start();
      },
    },
    ...postgres === undefined ? [] : [restartPostgres],
  ];
}
