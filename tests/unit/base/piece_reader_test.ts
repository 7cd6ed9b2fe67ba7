import assert from "node:assert/strict";
import { PieceReader } from "../../../src/base/piece_reader.ts";

const KIB = 1024;

Deno.test("PieceReader: a piece holds at most twice its size, however it came in", async () => {
  const sizes = [1, 2, 1_000, 20 * KIB, 40 * KIB, 64 * KIB];
  const reader = new PieceReader(byteStream(sizes));
  const got: number[] = [];
  for (let piece = await reader.read(); piece !== undefined; piece = await reader.read()) {
    got.push(piece.length);
    assert.ok(piece.buffer.byteLength <= 2 * piece.length, `${piece.buffer.byteLength} bytes`);
    assert.ok(piece.every((byte) => byte === got.length));
  }
  assert.deepEqual(got, sizes);
});

Deno.test("PieceReader: an earlier piece stays what it was", async () => {
  const reader = new PieceReader(byteStream([3, 3]));
  const first = await reader.read();
  await reader.read();
  assert.deepEqual(first, Uint8Array.of(1, 1, 1));
});

Deno.test("PieceReader: a stream that breaks throws, and can be cancelled", async () => {
  const stream = new ReadableStream({
    type: "bytes",
    pull: () => Promise.reject(new Error("broken")),
  });
  const reader = new PieceReader(stream);
  await assert.rejects(reader.read(), /broken/);
  await reader.cancel();
});

/** Pieces of these sizes, each of bytes that count them. */
function byteStream(sizes: readonly number[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  let index = 0;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const size = sizes[index++];
      if (size === undefined) {
        controller.close();
        controller.byobRequest?.respond(0);
      } else controller.enqueue(new Uint8Array(size).fill(index));
    },
  });
}
