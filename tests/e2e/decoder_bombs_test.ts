import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import type { Bytes } from "../../src/base/bytes.ts";
import type { Compression } from "../../src/nix/compression.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { type Fault, stallAfter } from "../support/faults.ts";
import { startLarder } from "../support/larder_process.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { zstdBlocks, zstdFrame } from "../support/zstd_frames.ts";

const MIB = 1 << 20;
const COUNT = 8;
const GROWN_MIB_MAX = 256;
const ZEROS = 300_000_000;

const fixture = (name: string) =>
  Deno.readFileSync(new URL(`../fixtures/nar/${name}`, import.meta.url));

interface Bomb {
  readonly compression: Compression;
  readonly bytes: Bytes;
  /** As it is signed; default: that of the object. */
  readonly narSize?: number;
  /** How many are requested at once; default: `COUNT`. */
  readonly count?: number;
  /** Default: `GROWN_MIB_MAX`. */
  readonly grownMibMax?: number;
}

/** NAR files that are small, and hold or ask for very much. */
const BOMBS: Readonly<Record<string, Bomb>> = {
  "a zstd window of 1.9 GB": {
    compression: "zstd",
    bytes: zstdFrame({ window: 20 << 3 | 7, blocks: zstdBlocks(500) }),
  },
  "a gigabyte in blocks of zstd": {
    compression: "zstd",
    bytes: zstdFrame({ window: 7 << 3, blocks: zstdBlocks(8_000) }),
  },
  // Each window is as large as the NAR allows: the decoders share the memory allowance.
  "windows of 128 MiB for a large NAR": {
    compression: "zstd",
    bytes: zstdFrame({ window: 17 << 3, blocks: zstdBlocks(10) }),
    narSize: 200_000_000,
    count: 16,
    // The garbage collector may not have freed the windows yet.
    grownMibMax: 900,
  },
  "900 MB in 658 bytes of bzip2": { compression: "bzip2", bytes: fixture("zeros.bz2") },
  "300 MB in 228 bytes of brotli": { compression: "br", bytes: fixture("zeros.br") },
  "300 MB of zeros in gzip": {
    compression: "gzip",
    bytes: new Uint8Array(gzipSync(new Uint8Array(ZEROS))),
  },
};

function objectsOf({ narSize, count = COUNT }: Bomb): readonly StoreObject[] {
  return Array.from({ length: count }, (_, seed) => {
    const object = makeStoreObject({ name: "thing-1.0", size: MIB, seed });
    return narSize === undefined ? object : { ...object, narSize };
  });
}

for (const [name, bomb] of Object.entries(BOMBS)) {
  for (const limit of ["1T", "1K"]) {
    const how = limit === "1K" ? "passed through" : "kept";
    Deno.test(`decoders: ${name}, ${bomb.count ?? COUNT} at once: refused, ${how}`, async () => {
      const { compression, bytes, grownMibMax = GROWN_MIB_MAX } = bomb;
      const objects = objectsOf(bomb);
      await using upstream = await fakeUpstream({ dialect: "attic", objects, stored: true });
      upstream.breakNar(replacedBy(bytes));
      // All are running before one ends.
      const allAsked = upstream.requested(/^\/nar\//, objects.length);
      upstream.breakNar(stallAfter(bytes.length - 4, allAsked));
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

      const outcomes = await Promise.all(urls.map(isWhole));

      const grownMib = Math.round((larder.peakBytes - before) / MIB);
      assert.ok(grownMib < grownMibMax, `its peak grew by ${grownMib} MiB`);
      assert.deepEqual(outcomes, objects.map(() => false));
      assert.ok(await isWhole(`${larder.url}/healthz`), "it runs on");
    });
  }
}

Deno.test("decoders: a NAR is answered beside eight bzip2 bombs, passed through", async () => {
  const honest = makeStoreObject({ name: "thing-1.0", size: MIB, seed: COUNT });
  const bytes = fixture("zeros.bz2");
  const objects = objectsOf({ compression: "bzip2", bytes, narSize: 20_000_000 });
  await using upstream = await fakeUpstream({
    dialect: "attic",
    objects: [...objects, honest],
    stored: true,
  });
  for (const object of objects) {
    upstream.breakNar(replacedBy(bytes), object);
    upstream.breakNarinfo(
      rewritten((text) => text.replace(/^Compression: .*$/m, "Compression: bzip2")),
      object,
    );
  }
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-max-size": "1K",
  });
  const before = larder.peakBytes;

  const outcomes = await Promise.all([...objects, honest].map(async (object) => {
    const answer = await fetch(`${larder.url}/${object.storePathHash}.narinfo`);
    const url = /^URL: (.*)$/m.exec(await answer.text())?.[1];
    return await isWhole(`${larder.url}/${url}`);
  }));

  assert.deepEqual(outcomes, [...objects.map(() => false), true]);
  const grownMib = Math.round((larder.peakBytes - before) / MIB);
  assert.ok(grownMib < GROWN_MIB_MAX, `its peak grew by ${grownMib} MiB`);
});

async function isWhole(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url);
    await answer.bytes();
    return answer.ok;
  } catch {
    return false;
  }
}

function replacedBy(body: Bytes): Fault {
  return (answer) => ({ ...answer, body, framing: body.length });
}
