import assert from "node:assert/strict";
import { checkKept, checkNarinfos } from "../check.ts";
import { download } from "../curl.ts";
import type { Measure } from "../figure.ts";

const MB = 1_000_000;
const BYTES = 64 * MB;

/** Misses of NARs as real upstreams compress them: larder has to decompress them to verify them. */
export function realNars(compression: "xz" | "zstd"): Measure {
  const name = `cold NAR of 64 MB of programs, ${compression}`;
  return {
    figures: [
      { name: `${name}: until kept`, unit: "s", target: { kind: "none" } },
      { name: `${name}: NAR bytes for a second of CPU`, unit: "MB/s", target: { kind: "none" } },
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
        const beforeS = server.cpuSeconds();
        const startedAtMs = performance.now();
        await download(workplace, { url: server.url + nar.narPath });
        await checkKept(server, [nar.narPath]);
        const tookS = (performance.now() - startedAtMs) / 1_000;
        return [tookS, nar.narSize / MB / (server.cpuSeconds() - beforeS)];
      };
    },
  };
}
