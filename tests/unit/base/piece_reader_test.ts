import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import type { Bytes } from "../../../src/base/bytes.ts";
import { PieceReader } from "../../../src/base/piece_reader.ts";
import { playRuntime } from "../../../src/runtime/current.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { checkProperty } from "../../support/property.ts";

const KIB = 1024;

Deno.test("PieceReader: a piece holds at most twice its size, however it came in", async () => {
  const sizes = [1, 2, 1_000, 20 * KIB, 40 * KIB, 64 * KIB];
  const reader = new PieceReader(byteStream(sizes));
  let byteLength = 0;
  for (let piece = await reader.read(); piece !== undefined; piece = await reader.read()) {
    byteLength += piece.length;
    assert.ok(piece.buffer.byteLength <= 2 * piece.length, `${piece.buffer.byteLength} bytes`);
  }
  assert.equal(byteLength, sizes.reduce((sum, size) => sum + size));
});

Deno.test("PieceReader: small chunks that come at once are few pieces", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const pieces = await played.play(piecesOf(new PieceReader(byteStream(Array(50_000).fill(1)))));
  assert.deepEqual(pieces.map(({ length }) => length), [1, 16_384, 16_384, 16_384, 847]);
});

Deno.test("PieceReader: of a chunk each millisecond there is a piece each two", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const chunks = byteStream(Array(9).fill(1), () => played.pause(1));
  const pieces = await played.play(piecesOf(new PieceReader(chunks)));
  assert.deepEqual(pieces.map(({ length }) => length), [1, 1, 2, 2, 2, 1]);
});

Deno.test("PieceReader: a small chunk is given out before the next one comes", async () => {
  const gate = new TransformStream<Uint8Array, Uint8Array>();
  const writer = gate.writable.getWriter();
  const reader = new PieceReader(asByteStream(gate.readable));
  for (const byte of [1, 2, 3]) {
    const written = writer.write(Uint8Array.of(byte));
    assert.deepEqual(await reader.read(), Uint8Array.of(byte));
    await written;
  }
});

Deno.test("PieceReader: an earlier piece stays as it was", async () => {
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

Deno.test("PieceReader: bytes before a break are returned before the error", async () => {
  let left = 3;
  const stream = new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (left-- === 0) throw new Error("broken");
      controller.enqueue(Uint8Array.of(left));
    },
  });
  const reader = new PieceReader(stream);
  const got: number[] = [];
  while (got.length < 3) got.push(...await reader.read() ?? []);
  assert.deepEqual(got, [2, 1, 0]);
  await assert.rejects(reader.read(), /broken/);
});

checkProperty(
  "PieceReader: all bytes come once and in order, whatever their chunks",
  fc.asyncProperty(
    fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 100_000 }))),
    fc.boolean(),
    async (sizes, reuses) => {
      const reader = new PieceReader(byteStream(sizes), { reuses, readBytes: 32 * KIB });
      const got = Buffer.concat(await piecesOf(reader));
      const sent = sizes.map((size, index) => new Uint8Array(size).fill(index + 1));
      assert.equal(Buffer.compare(got, Buffer.concat(sent)), 0);
    },
  ),
  { runs: 100 },
);

/** Copies of all. */
async function piecesOf(reader: PieceReader): Promise<readonly Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for (let piece = await reader.read(); piece !== undefined; piece = await reader.read()) {
    pieces.push(piece.slice());
  }
  return pieces;
}

function asByteStream(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      controller.enqueue((await reader.read()).value ?? new Uint8Array(1));
    },
  });
}

/** Pieces of these sizes, each of bytes that count them. */
function byteStream(
  sizes: readonly number[],
  pause: () => Promise<void> | undefined = () => undefined,
): ReadableStream<Bytes> {
  let index = 0;
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      await pause();
      const size = sizes[index++];
      if (size === undefined) {
        controller.close();
        controller.byobRequest?.respond(0);
      } else controller.enqueue(new Uint8Array(size).fill(index));
    },
  });
}
