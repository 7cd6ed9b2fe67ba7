import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { ByteBlocks } from "../../../src/base/byte_blocks.ts";
import { checkProperty } from "../../support/property.ts";

const KIB = 1024;

const pieces = fc.array(fc.integer({ min: 0, max: 400 * KIB }), { maxLength: 12 })
  .map((lengths) => lengths.map((length, index) => new Uint8Array(length).fill(index + 1)));

checkProperty(
  "ByteBlocks: joined and drained are the added bytes, and memory is as foretold",
  fc.property(pieces, (added) => {
    const blocks = new ByteBlocks();
    for (const piece of added) {
      const foretold = blocks.heldBytes + blocks.growthFor(piece.length);
      blocks.add(piece);
      assert.equal(blocks.heldBytes, foretold);
    }
    const all = Buffer.concat(added);
    const { byteLength, heldBytes } = blocks;
    assert.equal(byteLength, all.length);
    assert.ok(heldBytes - byteLength < Math.max(4 * KIB, Math.min(byteLength, 256 * KIB)) + 1);
    assert.ok(all.equals(blocks.joined()));
    const drained = [...blocks.drained()];
    assert.ok(Buffer.concat(drained).equals(all));
    assert.equal(drained.reduce((sum, { buffer }) => sum + buffer.byteLength, 0), heldBytes);
    assert.deepEqual([blocks.byteLength, blocks.heldBytes], [0, 0]);
  }),
  { runs: 100 },
);

Deno.test("ByteBlocks: a hundred thousand pieces of a byte hold no more than twice that", () => {
  const blocks = new ByteBlocks();
  for (let index = 0; index < 100_000; index++) blocks.add(Uint8Array.of(index));
  assert.ok(blocks.heldBytes < 200_000, `${blocks.heldBytes} bytes`);
});
