import assert from "node:assert/strict";
import fc from "fast-check";
import { RAW_ZSTD, UnsizedZstdSpeaker } from "../../src/cache/forms/raw_zstd.ts";
import { Speaker, type SpokenCompression, spokenSize } from "../../src/cache/forms/spoken_form.ts";
import { decoded } from "../../src/cache/verify/decoders.ts";
import { filter } from "../support/compressors.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { checkProperty } from "../support/property.ts";

const compressions: readonly SpokenCompression[] = ["xz", "zstd", "gzip", "br"];

/** Around the sizes of the blocks. */
const narSize = fc.oneof(
  fc.nat(100),
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
  const speaker = new Speaker(compression, nar.length);
  yield speaker.begin();
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

Deno.test("spoken form: a NAR of another size than announced throws", () => {
  assert.throws(() => [...spoken("xz", narOf(10), 4)].length > 0 && new Speaker("xz", 11).end());
  assert.throws(() => new Speaker("zstd", 9).speak(narOf(10)));
});

Deno.test("spoken form: sizes beyond 4 GiB are exact", () => {
  const narSize = 5 * 2 ** 32 + 1;
  assert.equal(spokenSize("zstd", narSize), 14 + narSize + 3 * Math.ceil(narSize / 131_072));
  const head = new DataView(RAW_ZSTD.head(narSize).buffer);
  assert.equal(head.getBigUint64(6, true), BigInt(narSize));
});

for (const [program, compression] of [["xz", "xz"], ["zstd", "zstd"]] as const) {
  testUnless(
    programsMissing(program),
    `spoken form: ${program} takes what larder speaks`,
    async () => {
      for (const size of [0, 1, 65_535, 65_536, 65_537, 131_072, 131_073, 1_000_000]) {
        const nar = narOf(size);
        const file = await bytesOf(spoken(compression, nar, 50_000));
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
