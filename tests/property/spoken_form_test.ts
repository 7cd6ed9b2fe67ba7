import assert from "node:assert/strict";
import fc from "fast-check";
import { RAW_ZSTD, UnsizedZstdSpeaker } from "../../src/cache/forms/raw_zstd.ts";
import { Bzip2Speaker } from "../../src/cache/forms/spoken_bzip2.ts";
import { Speaker, spokenSize } from "../../src/cache/forms/spoken_form.ts";
import { decoded } from "../../src/cache/verify/decoders.ts";
import { filter } from "../support/compressors.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { checkProperty } from "../support/property.ts";

const compressions = ["xz", "zstd", "gzip", "br", "bzip2"] as const;

type SpokenCompression = typeof compressions[number];

/** Around the sizes of the blocks. */
const narSize = fc.oneof(
  fc.nat(100),
  fc.integer({ min: 16_380, max: 16_390 }),
  fc.integer({ min: 65_530, max: 65_540 }),
  fc.integer({ min: 131_066, max: 131_080 }),
  fc.nat(400_000),
);
const pieceBytes = fc.oneof(fc.integer({ min: 1_000, max: 300_000 }), fc.constant(65_536));

function narOf(size: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: size }, (_, at) => at * 7 + (at >> 8));
}

function* pieces(nar: Uint8Array, byteLength: number): Generator<Uint8Array> {
  for (let at = 0; at < nar.length; at += byteLength) yield nar.subarray(at, at + byteLength);
}

async function bytesOf(parts: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
  const all: Uint8Array<ArrayBuffer>[] = [];
  for await (const part of parts) all.push(new Uint8Array(part));
  return new Uint8Array(await new Blob(all).arrayBuffer());
}

function* spoken(compression: SpokenCompression, nar: Uint8Array, byteLength: number) {
  if (compression === "bzip2") return yield* spokenBzip2(nar, byteLength);
  const speaker = new Speaker(compression, nar.length);
  yield speaker.begin();
  for (const piece of pieces(nar, byteLength)) yield* speaker.speak(piece);
  yield speaker.end();
}

function* spokenBzip2(nar: Uint8Array, byteLength: number) {
  const speaker = new Bzip2Speaker(nar.length);
  for (const piece of pieces(nar, byteLength)) yield* speaker.speak(piece);
  yield speaker.end();
}

function* spokenUnsized(nar: Uint8Array, byteLength: number) {
  const speaker = new UnsizedZstdSpeaker();
  yield speaker.begin();
  for (const piece of pieces(nar, byteLength)) yield* speaker.speak(piece);
  yield speaker.end();
}

async function decodedBytes(file: Uint8Array<ArrayBuffer>, compression: SpokenCompression) {
  const stream = ReadableStream.from([file]);
  return await bytesOf(decoded(stream, { compression, narSizeMax: 1 << 20 }));
}

for (const compression of compressions) {
  checkProperty(
    `spoken form: ${compression} of a NAR has its announced size, and decodes to the NAR`,
    fc.asyncProperty(narSize, pieceBytes, async (size, byteLength) => {
      const nar = narOf(size);
      const file = await bytesOf(spoken(compression, nar, byteLength));
      assert.equal(file.length, spokenSize(compression, size));
      assert.deepEqual(await decodedBytes(file, compression), nar);
    }),
    { runs: 40 },
  );

  checkProperty(
    `spoken form: ${compression} of a NAR is the same however its bytes come`,
    fc.asyncProperty(narSize, pieceBytes, pieceBytes, async (size, one, other) => {
      const nar = narOf(size);
      assert.deepEqual(
        await bytesOf(spoken(compression, nar, one)),
        await bytesOf(spoken(compression, nar, other)),
      );
    }),
    { runs: 20 },
  );
}

checkProperty(
  "spoken form: zstd of a NAR of unknown size decodes to the NAR",
  fc.asyncProperty(narSize, pieceBytes, async (size, byteLength) => {
    const nar = narOf(size);
    const file = await bytesOf(spokenUnsized(nar, byteLength));
    assert.deepEqual(await decodedBytes(file, "zstd"), nar);
  }),
  { runs: 40 },
);

/** Bytes that take bzip2 the most room or time: each of few, of runs, of periods, by rank. */
const HARD_BYTES: Readonly<Record<string, (at: number) => number>> = {
  "zeros": () => 0,
  "runs of three": (at) => Math.floor(at / 3),
  "runs of four": (at) => Math.floor(at / 4),
  "runs of 255": (at) => Math.floor(at / 255),
  "runs of 256": (at) => Math.floor(at / 256),
  "a period of two": (at) => at % 2,
  "a period of 255": (at) => at % 255,
  "a period of 8192": (at) => (at % 8_192) ** 2 >> 8,
  "the byte of the longest ago": (at) => 255 - at % 256,
  "words of Fibonacci": (at) =>
    Math.floor((at + 2) * 0.6180339887) - Math.floor((at + 1) * 0.6180339887),
};

for (const [name, byteAt] of Object.entries(HARD_BYTES)) {
  Deno.test(`spoken form: bzip2 of ${name} has its announced size, and decodes to the NAR`, async () => {
    for (const size of [1, 2, 4, 5, 255, 256, 260, 4_001, 16_383, 16_384, 16_385, 70_000]) {
      const nar = Uint8Array.from({ length: size }, (_, at) => byteAt(at));
      const file = await bytesOf(spoken("bzip2", nar, 50_000));
      assert.equal(file.length, spokenSize("bzip2", size), `${size}`);
      assert.deepEqual(await decodedBytes(file, "bzip2"), nar, `${size}`);
    }
  });
}

checkProperty(
  "spoken form: bzip2 of any bytes has its announced size, and decodes to them",
  fc.asyncProperty(
    fc.oneof(
      fc.uint8Array({ maxLength: 40_000, size: "max" }),
      fc.array(fc.nat(2), { maxLength: 40_000, size: "max" }).map((all) => Uint8Array.from(all)),
    ),
    async (nar) => {
      const file = await bytesOf(spoken("bzip2", nar, 1 << 20));
      assert.equal(file.length, spokenSize("bzip2", nar.length));
      assert.deepEqual(await decodedBytes(file, "bzip2"), nar);
    },
  ),
  { runs: 30 },
);

Deno.test("spoken form: bzip2 leaves out the blocks before a part, and no byte of it", async () => {
  const nar = narOf(100_000);
  const whole = await bytesOf(spoken("bzip2", nar, 30_000));
  for (const from of [1, 30_000, 100_000, whole.length - 1]) {
    const speaker = new Bzip2Speaker(nar.length, from);
    const part = await bytesOf([...speaker.speak(nar), speaker.end()]);
    assert.deepEqual(part.subarray(from), whole.subarray(from), `${from}`);
    // All but the head of the stream.
    const leftOut = part.subarray(4, from).filter((byte) => byte === 0).length;
    assert.ok(leftOut >= from - 4 - 24_000, `${from}: ${leftOut}`);
  }
});

Deno.test("spoken form: a NAR of another size than announced throws", () => {
  assert.throws(() => [...new Bzip2Speaker(9).speak(narOf(10))]);
  assert.throws(() => new Bzip2Speaker(9).end());
  assert.throws(() => [...spoken("xz", narOf(10), 4)].length > 0 && new Speaker("xz", 11).end());
  assert.throws(() => new Speaker("zstd", 9).speak(narOf(10)));
});

Deno.test("spoken form: sizes beyond 4 GiB are exact", () => {
  const narSize = 5 * 2 ** 32 + 1;
  const bzip2Blocks = (narSize - 1) / 16_384;
  const ofBlocks = (count: number) => spokenSize("bzip2", count * 16_384) - spokenSize("bzip2", 0);
  assert.equal(ofBlocks(bzip2Blocks), bzip2Blocks * ofBlocks(1));
  assert.equal(spokenSize("zstd", narSize), 14 + narSize + 3 * Math.ceil(narSize / 131_072));
  const head = new DataView(RAW_ZSTD.head(narSize).buffer);
  assert.equal(head.getBigUint64(6, true), BigInt(narSize));
});

for (const program of ["xz", "zstd", "bzip2"] as const) {
  testUnless(
    programsMissing(program),
    `spoken form: ${program} takes what larder speaks`,
    async () => {
      const sizes = [0, 1, 16_384, 16_385, 65_535, 65_536, 65_537, 131_072, 131_073, 1_000_000];
      const hard = Object.values(HARD_BYTES)
        .map((byteAt) => Uint8Array.from({ length: 40_000 }, (_, at) => byteAt(at)));
      for (const nar of [...sizes.map(narOf), await bytesOf(hard)]) {
        const file = await bytesOf(spoken(program, nar, 50_000));
        await filter(program, ["-t", "-q"], file);
        assert.deepEqual(await filter(program, ["-d", "-c", "-q"], file), nar);
        if (program === "zstd") {
          const unsized = await bytesOf(spokenUnsized(nar, 50_000));
          assert.deepEqual(await filter(program, ["-d", "-c", "-q"], unsized), nar);
        }
      }
    },
  );
}
