import assert from "node:assert/strict";
import { checkKept, checkNarinfos, checkNars, type Found } from "../check.ts";
import type { NarSet } from "../corpus.ts";
import { download, downloadRate } from "../curl.ts";
import { type Bench, cpuFigure, type Measure, ofProxy } from "../figure.ts";
import { PEER, PROXY, type Server } from "../server.ts";
import { touchMemory } from "../touch_memory.ts";
import { loaded } from "./narinfos.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;
const SMALL = { count: 200, bytes: 50 * KIB, seed: 2 };
const BIG_BYTES = 256 * MIB;

const SMALL_NAME = `NAR hits of 50 KiB, ${SMALL.count} different, 16 connections`;
const COLD_NAME = "cold NAR of 256 MiB";

/** Hits of small NARs. */
export const SMALL_NAR_HITS: Measure = {
  figures: [
    { name: SMALL_NAME, unit: "requests/s", target: ofProxy(0.5) },
    cpuFigure(SMALL_NAME, "µs"),
  ],
  async prepare(bench) {
    const nars = await putKept(bench, SMALL);
    const [paths] = [...nars.values()].map((found) => found.map(({ narPath }) => narPath));
    assert.ok(paths !== undefined);
    for (const found of nars.values()) {
      assert.deepEqual(found.map(({ narPath }) => narPath), paths, "one load for all three");
    }
    return await loaded(bench, { paths, connections: 16, status: 200 });
  },
};

/** Hits of one big NAR. */
export function bigNarHits(clients: number): Measure {
  const name = `NAR hits of 256 MiB, ${clients} ${clients === 1 ? "client" : "clients"}`;
  return {
    figures: [
      { name, unit: "MB/s", target: ofProxy(0.75) },
      cpuFigure(name, "ms"),
    ],
    async prepare(bench) {
      // The check has read every byte, so the servers are warm.
      const nars = await putKept(bench, { count: 1, bytes: BIG_BYTES, seed: 3 });
      const run = async (server: Server) => {
        const nar = nars.get(server)?.[0];
        assert.ok(nar !== undefined);
        const before = server.cpuSeconds();
        const rate = await downloadRate(bench.workplace, wanted(server, nar), clients);
        return [rate, 1_000 * (server.cpuSeconds() - before) / clients];
      };
      return run;
    },
  };
}

/** Misses of big NARs; a new one in every round. */
export const COLD_NAR: Measure = {
  figures: [
    // The other cache verifies less.
    {
      name: COLD_NAME,
      unit: "MB/s",
      target: { kind: "ratio", atLeast: { [PROXY]: 0.6, [PEER]: 1 } },
    },
    {
      name: `${COLD_NAME}, time to first byte`,
      unit: "ms",
      target: { kind: "behind", atMost: 3 },
    },
    cpuFigure(COLD_NAME, "ms"),
  ],
  async prepare(bench) {
    const nars = await putKnown(bench, { count: bench.rounds, bytes: BIG_BYTES, seed: 20 });
    const warmUp = await putKnown(bench, { count: 1, bytes: BIG_BYTES / 8, seed: 21 });
    // Half as much again: the load and the logs take some of it.
    const writtenBytes = bench.servers.length * bench.rounds * BIG_BYTES;
    await touchMemory(bench.workplace, 1.5 * writtenBytes);
    const run = async (server: Server, nar: Found | undefined) => {
      assert.ok(nar !== undefined);
      const before = server.cpuSeconds();
      const transfer = await download(bench.workplace, wanted(server, nar));
      await checkKept(server, [nar.narPath]);
      const cpuMs = 1_000 * (server.cpuSeconds() - before);
      await settle(bench);
      return [transfer.bytes / 1_000_000 / transfer.seconds, transfer.firstByteMs, cpuMs];
    };
    for (const server of bench.servers) await run(server, warmUp.get(server)?.[0]);
    return async (server, round) => await run(server, nars.get(server)?.[round]);
  },
};

function wanted({ url }: Server, { narPath, narSize }: Found) {
  return { url: url + narPath, bytes: narSize };
}

/** Waits for one server's writes, which would slow the next one down. */
async function settle({ workplace }: Bench): Promise<void> {
  await workplace.run({ command: "sync", args: ["-f", workplace.folder] });
}

type FoundByServer = ReadonlyMap<Server, readonly Found[]>;

/** NARs whose narinfo every server knows. */
async function putKnown(bench: Bench, set: NarSet): Promise<FoundByServer> {
  const objects = bench.corpus.putNars(set);
  const nars = new Map<Server, readonly Found[]>();
  for (const server of bench.servers) {
    nars.set(server, await checkNarinfos(server, objects, bench.corpus.publicKey));
  }
  return nars;
}

/** NARs that every server has. */
async function putKept(bench: Bench, set: NarSet): Promise<FoundByServer> {
  const nars = await putKnown(bench, set);
  for (const [server, found] of nars) {
    await checkNars(server, found);
    await checkKept(server, found.map(({ narPath }) => narPath));
  }
  return nars;
}
