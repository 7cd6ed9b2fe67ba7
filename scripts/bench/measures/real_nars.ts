import assert from "node:assert/strict";
import pLimit from "p-limit";
import { checkKept, checkNarinfos } from "../check.ts";
import type { Published, RealCompression } from "../corpus.ts";
import { download } from "../curl.ts";
import type { Bench, Measure } from "../figure.ts";
import { LARDER, type Server } from "../server.ts";

const MB = 1_000_000;
const BYTES = 64 * MB;

/**
 * larder starts its Workers in the same order: fetch, then the first to verify. It alone verifies
 * while there is one NAR.
 */
const VERIFY_THREAD = "worker-2";

/** Misses of NARs as real upstreams compress them: larder has to decompress them to verify them. */
export function realNars(compression: RealCompression): Measure {
  const name = `cold NAR of 64 MB of programs, ${compression}`;
  return {
    figures: [
      { name: `${name}: until kept`, unit: "s", target: { kind: "none" } },
      {
        name: `${name}: NAR bytes for a second of the verify thread`,
        unit: "MB/s",
        target: { kind: "none" },
      },
    ],
    async prepare({ corpus, workplace, servers, rounds }) {
      const set = { count: rounds, bytes: BYTES, seed: 30 };
      const objects = await corpus.putRealNars(set, compression);
      const found = new Map(
        await Promise.all(
          servers.map(async (server) =>
            [server, await checkNarinfos(server, objects, corpus.publicKey)] as const
          ),
        ),
      );
      return async (server, round) => {
        const nar = found.get(server)?.[round];
        assert.ok(nar !== undefined);
        const beforeS = verifySeconds(server);
        const startedAtMs = performance.now();
        await download(workplace, { url: server.url + nar.narPath });
        await checkKept(server, [nar.narPath]);
        const tookS = (performance.now() - startedAtMs) / 1_000;
        if (!server.name.startsWith(LARDER)) return [tookS];
        return [tookS, nar.narSize / MB / (verifySeconds(server) - beforeS)];
      };
    },
  };
}

function verifySeconds(server: Server): number {
  return server.cpuTimes().threads.get(VERIFY_THREAD) ?? NaN;
}

const BACKLOG_NAME = "24 cold NARs of programs and sources, xz and zstd";

/** Sets of new NARs, one for each round. */
const BACKLOG_SEED = 50;

/** Downloads that a Nix client has at once. */
const CLIENT_DOWNLOADS = 16;

/** Misses of many real NARs at once, which wait for the verify threads. */
export const BACKLOG: Measure = {
  figures: [
    {
      name: `${BACKLOG_NAME}, from the first narinfo until all are kept`,
      unit: "s",
      target: { kind: "none" },
    },
    { name: `${BACKLOG_NAME}: NAR bytes kept`, unit: "MB/s", target: { kind: "none" } },
  ],
  async prepare(bench) {
    const sets: (readonly Published[])[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      sets.push(await bench.corpus.putBacklog(BACKLOG_SEED + round));
    }
    return async (server, round) => {
      const objects = sets[round] ?? [];
      const startedAtMs = performance.now();
      // larder fetches the small ones ahead, so the narinfos are part of it.
      const found = await checkNarinfos(server, objects, bench.corpus.publicKey);
      const paths = found.map(({ narPath }) => narPath);
      await pLimit(CLIENT_DOWNLOADS).map(paths, (path) => drop(bench, server.url + path));
      // One after the other, so that the questions cost little.
      for (const path of paths) await checkKept(server, [path]);
      const tookS = (performance.now() - startedAtMs) / 1_000;
      const narBytes = objects.reduce((sum, { narSize }) => sum + narSize, 0);
      return [tookS, narBytes / MB / tookS];
    };
  },
};

async function drop({ workplace }: Bench, url: string): Promise<void> {
  await download(workplace, { url });
}
