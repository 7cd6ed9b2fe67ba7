import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { windowBytesMax, ZstdFrames } from "../../src/cache/verify/zstd_frames.ts";
import { checkProperty } from "../support/property.ts";
import { skippableFrame, zstdFrame, type ZstdFrameParts } from "../support/zstd_frames.ts";

const MIB = 1 << 20;
const WINDOW_AT = 5;

const size = fc.integer({ min: 0, max: 300 });

/** Raw and compressed blocks have their bytes behind them, a run has one. */
const block = fc.record({ type: fc.constantFrom(0, 1, 2), size });

const blocks = fc.array(block, { minLength: 1, maxLength: 4 }).map((list) =>
  list.flatMap(({ type, size }, index) => {
    const header = size << 3 | type << 1 | Number(index === list.length - 1);
    const bytes = new Array(type === 1 ? 1 : size).fill(0x2a);
    return [header & 0xff, header >> 8 & 0xff, header >> 16, ...bytes];
  })
);

const contentSize = fc.oneof(
  fc.record({ byteLength: fc.constant(2 as const), value: fc.integer({ min: 256, max: 65_791 }) }),
  fc.record({
    byteLength: fc.constantFrom(4 as const, 8 as const),
    value: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  }),
  fc.record({ byteLength: fc.constant(8 as const), value: fc.integer({ min: 0, max: 2 ** 48 }) }),
);

const common = {
  dictionaryIdBytes: fc.constantFrom(0 as const, 1 as const, 2 as const, 4 as const),
  hasChecksum: fc.boolean(),
  blocks,
};

interface Frame {
  readonly bytes: Uint8Array;
  readonly windowBytes: number;
  /** Where its window's descriptor stands; absent where it has none. */
  readonly windowAt?: number;
}

const windowed = fc.record({ ...common, window: fc.integer({ min: 0, max: 255 }) })
  .map((parts): Frame => ({
    bytes: zstdFrame(parts),
    windowBytes: 2 ** (10 + (parts.window >> 3)) * (1 + (parts.window & 7) / 8),
    windowAt: WINDOW_AT,
  }));

const single = fc.record({ ...common, contentSize }).map((parts: ZstdFrameParts): Frame => ({
  bytes: zstdFrame(parts),
  windowBytes: parts.contentSize?.value ?? 0,
}));

const skippable = fc.tuple(fc.integer({ min: 0, max: 15 }), size)
  .map(([kind, byteLength]): Frame => ({
    bytes: skippableFrame(kind, byteLength),
    windowBytes: 0,
  }));

const file = fc.array(fc.oneof(windowed, single, skippable), { minLength: 1, maxLength: 5 });
const narSize = fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: 0, max: 2 ** 40 }));
const pieceBytes = fc.constantFrom(1, 2, 3, 7, 64, Infinity);

checkProperty(
  "zstd frames: the decoder gets every byte of those before the first that asks for too much",
  fc.property(file, narSize, pieceBytes, (frames, narSize, pieceBytes) => {
    const max = windowBytesMax(narSize);
    const tooLarge = frames.findIndex(({ windowBytes, windowAt }) =>
      windowBytes > (windowAt === undefined ? max : 128 * MIB)
    );
    const good = tooLarge < 0 ? frames : frames.slice(0, tooLarge);

    const { given, error } = read(frames.map(({ bytes }) => bytes), { narSize, pieceBytes });

    assert.equal(error !== undefined, tooLarge >= 0, error);
    const expected = good.map(({ bytes, windowAt, windowBytes }) => {
      const copy = Uint8Array.from(bytes);
      if (windowAt !== undefined) copy[windowAt] = windowGiven(narSize, windowBytes, bytes);
      return copy;
    });
    assert.deepEqual(Buffer.from(given), Buffer.concat(expected));
  }),
);

checkProperty(
  "zstd frames: any bytes are given out as they are, or refused, and none is lost",
  fc.property(fc.uint8Array({ maxLength: 200 }), pieceBytes, (tail, pieceBytes) => {
    const frame = zstdFrame({ window: 0, blocks: [1, 0, 0] });
    const { given, error } = read([frame, tail], { narSize: MIB, pieceBytes });
    const all = Buffer.concat([frame, tail]);
    assert.equal(Buffer.compare(given, all.subarray(0, given.length)), 0);
    if (error === undefined) assert.equal(given.length, all.length);
  }),
);

Deno.test("zstd frames: a decoder's window has room for the NAR and a byte, up to 128 MiB", () => {
  assert.deepEqual([0, 1_023, 1_024].map(windowBytesMax), [1_024, 1_024, 2_048]);
  assert.deepEqual([9 * MIB, 64 * MIB].map(windowBytesMax), [16 * MIB, 128 * MIB]);
  assert.deepEqual([65 * MIB, 2 ** 40].map(windowBytesMax), [128 * MIB, 128 * MIB]);
});

interface Reading {
  readonly narSize: number;
  readonly pieceBytes: number;
}

function read(parts: readonly Uint8Array[], { narSize, pieceBytes }: Reading) {
  const bytes = new Uint8Array(Buffer.concat(parts));
  const frames = new ZstdFrames(narSize);
  const given: Uint8Array[] = [];
  try {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      for (const checked of frames.checked(piece)) given.push(checked);
    }
    frames.end();
  } catch (error) {
    return { given: Buffer.concat(given), error: String(error) };
  }
  return { given: Buffer.concat(given), error: undefined };
}

/** The smallest window that is larger than the NAR, if that is smaller than the requested one. */
function windowGiven(narSize: number, windowBytes: number, bytes: Uint8Array): number {
  for (let log = 10; 2 ** log < windowBytes; log++) {
    if (2 ** log > narSize) return (log - 10) << 3;
  }
  return bytes[WINDOW_AT] ?? 0;
}
