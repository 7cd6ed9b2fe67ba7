import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { zstdDecompressSync } from "node:zlib";
import type { Bytes } from "../../src/base/bytes.ts";
import { unzstd } from "../../src/cache/verify/unzstd.ts";
import type { OpenZstd } from "../../src/cache/verify/zstd_decoder.ts";
import { openNativeZstd } from "../../src/cache/verify/zstd_native.ts";
import { FIXTURE_NAR, NAR_FIXTURES } from "../support/nar_fixtures.ts";
import { ZSTD_DECODERS } from "../support/zstd_decoders.ts";
import { skippableFrame, ZSTD_BLOCK_BYTES, zstdBlocks, zstdFrame } from "../support/zstd_frames.ts";

const FIXTURES = NAR_FIXTURES.filter(({ compression }) => compression === "zstd");

const MIB = 1 << 20;

/** The most that a decoder may hold beside its window, its output included. */
const PIECE_BYTES_MAX = MIB;

const WINDOW_128_MIB = 17 << 3;

const DESCRIPTOR_AT = 4;
const CHECKSUM_FLAG = 1 << 2;

Deno.test("zstd: the native decoder is there where the runtime has one, and only there", () => {
  assert.equal(openNativeZstd !== undefined, canUndoZstd());
});

for (const { name, open } of ZSTD_DECODERS) {
  for (const fixture of FIXTURES) {
    for (const pieceBytes of [1, 1_000, Infinity]) {
      Deno.test(`zstd (${name}): ${fixture.name} in pieces of ${pieceBytes}`, async () => {
        const nar = await decoded(inPieces(fixture.bytes, pieceBytes), open);
        assert.ok(nar.equals(FIXTURE_NAR));
      });
    }
  }

  Deno.test(`zstd (${name}): frames behind one another in one piece are all read`, async () => {
    const frame = zstdFrame({ window: 0, blocks: [1 << 3 | 1, 0, 0, 0x2a] });
    const all = Array(1_000).fill([frame, skippableFrame(3, 4)]).flat();
    assert.ok((await decoded([joined(all)], open)).equals(Buffer.alloc(1_000, 0x2a)));
  });

  Deno.test(`zstd (${name}): output that fills whole pieces is all given out, once`, async () => {
    for (let blocks = 1; blocks <= 8; blocks++) {
      const frame = zstdFrame({ window: 7 << 3, blocks: zstdBlocks(blocks) });
      const nar = await decoded([joined([frame, frame])], open);
      assert.equal(nar.length, 2 * blocks * ZSTD_BLOCK_BYTES);
    }
  });

  Deno.test(`zstd (${name}): a frame that is cut is an error`, async () => {
    for (const { bytes } of FIXTURES) {
      const cut = bytes.subarray(0, bytes.length - 1);
      await assert.rejects(decoded([cut], open), /Cannot read zstd: it ends too early/);
    }
  });

  Deno.test(`zstd (${name}): a block that cannot be undone is an error`, async () => {
    // A compressed block without a header of its own.
    const frame = zstdFrame({ window: 0, blocks: [3 << 3 | 2 << 1 | 1, 0, 0, 0xff, 0xff, 0xff] });
    await assert.rejects(decoded([frame], open), /Cannot read zstd: its decoder says "\D+"/);
  });

  Deno.test(`zstd (${name}): a wrong checksum behind much output is an error`, async () => {
    const frame = zstdFrame({ window: 7 << 3, blocks: zstdBlocks(8) });
    const withSum = joined([frame.with(DESCRIPTOR_AT, CHECKSUM_FLAG), Uint8Array.of(1, 2, 3, 4)]);
    // In one piece, and with the sum in a piece of its own.
    for (const pieces of [[withSum], [withSum.slice(0, -4), withSum.slice(-4)]]) {
      const reading = decoded(pieces, open);
      await assert.rejects(reading, /Cannot read zstd: its decoder says "/);
    }
  });

  Deno.test(`zstd (${name}): the largest window is claimed before it is read`, async () => {
    const frame = zstdFrame({ window: WINDOW_128_MIB, blocks: zstdBlocks(1) });
    const claims: number[] = [];
    const claim = (bytes: number) => {
      claims.push(bytes);
      return Promise.reject(new Error("no memory"));
    };
    const reading = Array.fromAsync(unzstd(piecesOf([frame]), { narSize: 1e9, claim }, open));
    await assert.rejects(reading, /no memory/);
    assert.deepEqual(claims, [128 << 20]);
    assert.equal((await decoded([frame], open)).length, ZSTD_BLOCK_BYTES);
  });

  Deno.test(`zstd (${name}): a file that holds much is given out little by little`, async () => {
    const bytes = zstdFrame({ window: 7 << 3, blocks: zstdBlocks(200) });
    for await (const piece of unzstd(piecesOf([bytes]), unbounded, open)) {
      assert.ok(piece.length <= PIECE_BYTES_MAX, `a piece of ${piece.length} bytes`);
    }
  });

  Deno.test(`zstd (${name}): closed early, it frees its window and its source`, async () => {
    const bytes = zstdFrame({ window: 13 << 3, blocks: zstdBlocks(1_024) });
    const before = Deno.memoryUsage().rss;
    let closed = 0;
    for (let file = 0; file < 96; file++) {
      let read = 0;
      for await (const piece of unzstd(piecesOf([bytes], () => closed++), unbounded, open)) {
        read += piece.length;
        // The window was written to.
        if (read >= 8 * MIB) break;
      }
    }
    const grownMib = Math.round((Deno.memoryUsage().rss - before) / MIB);
    assert.ok(grownMib < 256, `it holds ${grownMib} MiB more`);
    assert.equal(closed, 96);
  });
}

const unbounded = { narSize: 1e9, claim: () => Promise.resolve() };

async function decoded(pieces: Iterable<Bytes>, open: OpenZstd): Promise<Buffer> {
  const copy = (piece: Uint8Array) => new Uint8Array(piece);
  return Buffer.concat(await Array.fromAsync(unzstd(piecesOf(pieces), unbounded, open), copy));
}

/** As a file is read: each piece in a turn of its own. */
async function* piecesOf(pieces: Iterable<Bytes>, closed = () => {}) {
  try {
    for (const piece of pieces) yield await Promise.resolve(piece);
  } finally {
    closed();
  }
}

function* inPieces(bytes: Bytes, byteLength: number) {
  for (let at = 0; at < bytes.length; at += byteLength) yield bytes.subarray(at, at + byteLength);
}

function joined(parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(Buffer.concat(parts));
}

function canUndoZstd(): boolean {
  try {
    return zstdDecompressSync(zstdFrame({ window: 0, blocks: [1, 0, 0] })).length === 0;
  } catch {
    return false;
  }
}
