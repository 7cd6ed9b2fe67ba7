import assert from "node:assert/strict";
import xz from "xz-decompress";
import type { Bytes } from "../../../src/base/bytes.ts";
import { unxz } from "../../../src/cache/verify/unxz.ts";
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
