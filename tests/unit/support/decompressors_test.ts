import assert from "node:assert/strict";
import { type Compression, COMPRESSIONS } from "../../../src/nix/compression.ts";
import { available, compress } from "../../support/compressors.ts";
import { decompress } from "../../support/decompressors.ts";
import { FIXTURE_NAR, NAR_FIXTURES } from "../../support/nar_fixtures.ts";
import { testUnless } from "../../support/program.ts";
import { incompressible } from "../../support/store_object.ts";
import { storedXz, storedZstd } from "../../support/stored_frames.ts";

for (const { name, compression, bytes } of NAR_FIXTURES) {
  Deno.test(`${name} decompresses to the NAR that it was made of`, async () => {
    assert.deepEqual(await decompress(bytes, compression), FIXTURE_NAR);
  });
}

for (const compression of Object.keys(COMPRESSIONS) as Compression[]) {
  testUnless(
    available(compression),
    `${compression}: decompressing undoes compressing`,
    async () => {
      for (const bytes of [FIXTURE_NAR, incompressible(300_000), new Uint8Array(0)]) {
        assert.deepEqual(await decompress(await compress(bytes, compression), compression), bytes);
      }
    },
  );
}

Deno.test("stored xz and zstd decode at every edge of their chunks", async () => {
  const kib = 1_024;
  for (const size of [0, 1, 2, 3, 4, 5, 64 * kib - 1, 64 * kib, 64 * kib + 1, 128 * kib, 500_003]) {
    const bytes = incompressible(size, size);
    assert.deepEqual(await decompress(storedXz(bytes), "xz"), bytes);
    assert.deepEqual(await decompress(storedZstd(bytes), "zstd"), bytes);
  }
});
