import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import type { Bytes } from "../../src/base/bytes.ts";
import { unzstd } from "../../src/cache/verify/unzstd.ts";
import { filter } from "../support/compressors.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { checkProperty } from "../support/property.ts";
import { incompressible } from "../support/store_object.ts";
import { ZSTD_DECODERS, type ZstdDecoding } from "../support/zstd_decoders.ts";
import { skippableFrame, zstdFrame } from "../support/zstd_frames.ts";

const MIB = 1 << 20;
const NO_ZSTD = programsMissing("zstd");

/** Pieces that come again, some near and some far, between runs and bytes at random. */
const content = fc.array(
  fc.record({
    kind: fc.constantFrom("random", "run", "again"),
    byteLength: fc.oneof(
      fc.integer({ min: 0, max: 500 }),
      fc.integer({ min: 0, max: 300_000 }),
    ),
    seed: fc.integer({ min: 1, max: 5 }),
  }),
  { maxLength: 12 },
).map((parts) =>
  Buffer.concat(parts.map(({ kind, byteLength, seed }) => {
    if (kind === "run") return new Uint8Array(byteLength).fill(seed);
    const bytes = incompressible(byteLength, kind === "again" ? 0 : seed);
    return kind === "again" ? Buffer.concat([bytes, bytes]) : bytes;
  }))
);

const options = fc.tuple(
  fc.constantFrom("-1", "-3", "-9", "-16", "--fast=5"),
  fc.subarray(["--long=27", "--no-check", "-T2", "--target-compressed-block-size=1340"]),
).map(([level, more]) => [level, ...more, "-c", "-q"]);

/** As zstd, pzstd and those who flush often leave them beside frames that hold something. */
const between = fc.constantFrom(
  new Uint8Array(0),
  skippableFrame(3, 4),
  skippableFrame(0, 300),
  zstdFrame({ window: 17 << 3, blocks: [1, 0, 0] }),
  zstdFrame({ window: 0, blocks: [0, 0, 0, 0, 0, 0, 1, 0, 0] }),
);

const frames = fc.array(fc.record({ content, options, between }), { minLength: 1, maxLength: 3 });
const pieceBytes = fc.constantFrom(1_000, 7_777, 128 * 1024, Infinity);

for (const { name, open } of ZSTD_DECODERS) {
  checkProperty(
    `zstd (${name}): the program's output, at any level, in any frames, decodes to its input`,
    fc.asyncProperty(frames, pieceBytes, async (frames, pieceBytes) => {
      const nar = Buffer.concat(frames.map(({ content }) => content));
      const parts = await Promise.all(
        frames.map(async ({ content, options, between }) => [
          between,
          await filter("zstd", options, content),
        ]),
      );

      const measure = await measured(Buffer.concat(parts.flat()), { nar, open, pieceBytes });

      assert.deepEqual(measure, hashed(nar));
    }),
    { runs: 25, excuse: NO_ZSTD },
  );
}

for (const level of ["-3", "-22"]) {
  for (const { name, open } of ZSTD_DECODERS) {
    testUnless(
      NO_ZSTD,
      `zstd ${level} (${name}): bytes from 100 MiB before are found again`,
      async () => {
        const pieces = Array.from({ length: 256 }, (_, seed) => incompressible(1_024, seed + 1));
        const nar = Buffer.concat([...pieces, new Uint8Array(100 * MIB), ...pieces.toReversed()]);
        const bytes = await filter("zstd", ["--ultra", level, "--long=27", "-c", "-q"], nar);
        // Once, not twice.
        assert.ok(bytes.length < 400_000, `${bytes.length} bytes`);

        assert.deepEqual(await measured(bytes, { nar, open }), hashed(nar));
      },
    );
  }
}

interface Measuring extends Pick<ZstdDecoding, "open"> {
  readonly nar: Uint8Array;
  readonly pieceBytes?: number;
}

function hashed(nar: Uint8Array) {
  return { digest: createHash("sha256").update(nar).digest(), narSize: nar.length };
}

async function measured(bytes: Uint8Array, { nar, open, pieceBytes = 256 * 1024 }: Measuring) {
  const stream = ReadableStream.from(piecesOf(Uint8Array.from(bytes), pieceBytes));
  const hash = createHash("sha256");
  let narSize = 0;
  const bounds = { narSize: nar.length, claim: () => Promise.resolve() };
  for await (const piece of unzstd(stream, bounds, open)) {
    hash.update(piece);
    narSize += piece.length;
  }
  return { digest: hash.digest(), narSize };
}

function* piecesOf(bytes: Bytes, pieceBytes: number) {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
