import process from "node:process";
import { type DatabasePlace, openMetadata } from "../../../src/app/back_ends/metadata_back_end.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { hash, put } from "../../../tests/support/metadata_rows.ts";
import { openRedisLocks } from "../../../tests/support/redis_locks.ts";
import { median } from "../rounds.ts";

const ROUNDS = 3;
const CALLS = 1_000;
const MEMBER = "bench.1.larder";
const TTL_MS = 60_000;
const LIMIT_BYTES = 2 ** 40;
const SILENT = createLogger("error", { write() {} });

/** Microseconds of one call: until it is over, and of the processor of the caller. */
export interface CallCost {
  readonly us: number;
  readonly cpuUs: number;
}

/** A lease that is taken and given back. */
export async function leaseCost(redis: string): Promise<CallCost> {
  await using locks = await openRedisLocks(redis, { keyPrefix: "calls:" });
  return await costOf(async (at) => {
    const lease = await locks.tryAcquire(`download:nar:${at}`, TTL_MS);
    if (lease === undefined) throw new Error("Cannot measure: another process has the lock");
    await lease[Symbol.asyncDispose]();
  });
}

export interface MetadataCosts {
  readonly reservation: CallCost;
  /** Cost of reading the row of a narinfo that is not in memory. */
  readonly row: CallCost;
}

export async function metadataCosts(place: DatabasePlace): Promise<MetadataCosts> {
  await using metadata = await openMetadata(place, SILENT);
  const hashes = Array.from({ length: CALLS }, (_, at) => hash(String(at)));
  await metadata.apply(hashes.map((storePathHash) => put(storePathHash, [])));
  await metadata.beat(MEMBER, { reservedBytes: 0, limitBytes: LIMIT_BYTES });
  let bytes = 0;
  const reservation = await costOf(async () => {
    bytes++;
    const order = { neededBytes: bytes, wantedBytes: bytes, limitBytes: LIMIT_BYTES };
    if (await metadata.reserve(MEMBER, order) !== bytes) throw new Error("Cannot reserve");
  });
  const row = await costOf(async (at) => {
    const storePathHash = hashes[at];
    const found = storePathHash && await metadata.findNarinfo(storePathHash);
    if (found === undefined) throw new Error("Cannot find a row");
  });
  return { reservation, row };
}

/** The median of the rounds, each of many calls one after another. The first one warms up. */
async function costOf(call: (at: number) => Promise<void>): Promise<CallCost> {
  const rounds: CallCost[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const startedAtMs = performance.now();
    const before = process.cpuUsage();
    for (let at = 0; at < CALLS; at++) await call(at);
    const { user, system } = process.cpuUsage(before);
    const us = 1_000 * (performance.now() - startedAtMs) / CALLS;
    rounds.push({ us, cpuUs: (user + system) / CALLS });
  }
  const measured = rounds.slice(1);
  return {
    us: median(measured.map(({ us }) => us)),
    cpuUs: median(measured.map(({ cpuUs }) => cpuUs)),
  };
}
