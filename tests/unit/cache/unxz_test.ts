import assert from "node:assert/strict";
import xz from "xz-decompress";
import type { Bytes } from "../../../src/base/bytes.ts";
import { idleXz, unxz } from "../../../src/cache/verify/unxz.ts";
import { NAR_FIXTURES } from "../../support/nar_fixtures.ts";
import { storedXz } from "../../support/stored_frames.ts";

Deno.test("xz: larder's decoders leave the streams of the library alone", async () => {
  const packed = new Uint8Array(await storedXz(new TextEncoder().encode("bytes")));
  const body = () => new Blob([packed]).stream() as ReadableStream<Bytes>;
  const byLibrary = () => new Response(new xz.XzReadableStream(body())).text();
  for (let turn = 0; turn < 2; turn++) {
    assert.equal(await byLibrary(), "bytes");
    assert.equal(await new Response(ReadableStream.from(unxz(body()))).text(), "bytes");
  }
});

Deno.test("xz: a file with the dictionary that Nix writes leaves its decoder for the next", async () => {
  while (idleXz.take() !== undefined);
  const fixture = NAR_FIXTURES.find(({ name }) => name === "blocks.nar.xz");
  await new Response(ReadableStream.from(unxz(new Blob([fixture!.bytes]).stream()))).bytes();
  const module = idleXz.take();
  assert.ok(module !== undefined);
  idleXz.keep(module);
});
