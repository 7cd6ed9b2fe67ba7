import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import type { Compression } from "../../src/nix/compression.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import type { Fault } from "../support/faults.ts";
import { startLarder } from "../support/larder_process.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { zstdBlocks, zstdFrame } from "../support/zstd_frames.ts";

const MIB = 1 << 20;
const COUNT = 8;
const GROWN_MIB_MAX = 256;
const TOOK_MS_MAX = 10_000;
const ZEROS = 300_000_000;

const fixture = (name: string) =>
  Deno.readFileSync(new URL(`../fixtures/nar/${name}`, import.meta.url));

/** NAR files that are small, and hold or ask for very much. */
const BOMBS: Readonly<Record<string, readonly [Compression, Uint8Array<ArrayBuffer>]>> = {
  "a zstd window of 1.9 GB": ["zstd", zstdFrame({ window: 20 << 3 | 7, blocks: zstdBlocks(500) })],
  "a gigabyte in blocks of zstd": [
    "zstd",
    zstdFrame({ window: 7 << 3, blocks: zstdBlocks(8_000) }),
  ],
  "900 MB in 658 bytes of bzip2": ["bzip2", fixture("zeros.bz2")],
  "300 MB in 228 bytes of brotli": ["br", fixture("zeros.br")],
  "300 MB of zeros in gzip": ["gzip", new Uint8Array(gzipSync(new Uint8Array(ZEROS)))],
};

const objects = Array.from({ length: COUNT }, (_, seed) => (
  makeStoreObject({ name: "thing-1.0", size: MIB, seed })
));

for (const [name, [compression, bytes]] of Object.entries(BOMBS)) {
  for (const limit of ["1T", "1K"]) {
    const how = limit === "1K" ? "passed through" : "kept";
    Deno.test(`decoders: ${name}, ${COUNT} at once, are refused: ${how}`, async () => {
      await using upstream = await fakeUpstream({ dialect: "attic", objects, stored: true });
      upstream.breakNar(replacedBy(bytes));
      upstream.breakNarinfo(
        rewritten((text) => text.replace(/^Compression: .*$/m, `Compression: ${compression}`)),
      );
      await using larder = await startLarder({
        "cache-upstream-url": upstream.url,
        "cache-upstream-public-key": upstream.publicKey,
        "cache-max-size": limit,
      });
      const urls = await Promise.all(objects.map(async ({ storePathHash }) => {
        const answer = await fetch(`${larder.url}/${storePathHash}.narinfo`);
        return `${larder.url}/${/^URL: (.*)$/m.exec(await answer.text())?.[1]}`;
      }));
      const before = larder.peakBytes;
      const startedAt = performance.now();

      const outcomes = await Promise.all(urls.map(isWhole));

      const tookMs = performance.now() - startedAt;
      const grownMib = Math.round((larder.peakBytes - before) / MIB);
      assert.ok(grownMib < GROWN_MIB_MAX, `its peak grew by ${grownMib} MiB`);
      assert.deepEqual(outcomes, objects.map(() => false));
      assert.ok(tookMs < TOOK_MS_MAX, `it took ${Math.round(tookMs)} ms`);
      assert.ok(await isWhole(`${larder.url}/healthz`), "it runs on");
    });
  }
}

async function isWhole(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url);
    await answer.bytes();
    return answer.ok;
  } catch {
    return false;
  }
}

function replacedBy(body: Uint8Array<ArrayBuffer>): Fault {
  return (answer) => ({ ...answer, body, framing: body.length });
}
