import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { decodeBody } from "../../../src/cache/verify/decode_body.ts";

const TEXT = new TextEncoder().encode(JSON.stringify({ version: 1, root: {} }));

async function decode(bytesMax: number) {
  const order = { compression: "gzip", bytesMax, result: "bytes" } as const;
  return await decodeBody(new Uint8Array(gzipSync(TEXT)), order);
}

Deno.test("decode body: one of exactly the most bytes is whole, one more is too large", async () => {
  assert.deepEqual(await decode(TEXT.length), { kind: "bytes", bytes: TEXT });
  assert.equal((await decode(TEXT.length - 1)).kind, "too-large");
});

Deno.test("decode body: its memory is claimed before the work, and a refusal ends it", async () => {
  const claims: number[] = [];
  const order = { compression: "gzip", bytesMax: 1_000_000, result: "shape" } as const;
  const body = new Uint8Array(gzipSync(TEXT));
  const pace = {
    claim: (bytes: number) => Promise.resolve(void claims.push(bytes)),
    step: () => undefined,
  };
  assert.deepEqual(await decodeBody(body, order, pace), { kind: "shape", isObject: true });
  assert.equal(claims[0], 1_000_000);
  const claim = () => Promise.reject(new Error("no memory"));
  await assert.rejects(decodeBody(body, order, { ...pace, claim }), /no memory/);
});
