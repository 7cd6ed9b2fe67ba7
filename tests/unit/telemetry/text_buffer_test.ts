import assert from "node:assert/strict";
import fc from "fast-check";
import { TextBuffer } from "../../../src/telemetry/line_queue.ts";
import { checkProperty } from "../../support/property.ts";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 100 }),
  // Some of these outgrow the buffer.
  fc.record({ unit: fc.constantFrom("x", "ä", "€", "😀"), count: fc.nat(40_000) })
    .map(({ unit, count }) => unit.repeat(count)),
);

checkProperty(
  "text buffer: it holds the encoded texts since the last clear()",
  fc.property(fc.array(fc.array(text, { maxLength: 5 }), { maxLength: 3 }), (rounds) => {
    const buffer = new TextBuffer();
    for (const texts of rounds) {
      for (const one of texts) buffer.append(one);
      const encoded = new TextEncoder().encode(texts.join(""));
      assert.equal(buffer.byteLength, encoded.length);
      assert.deepEqual(buffer.bytes(), encoded);
      buffer.clear();
      assert.equal(buffer.byteLength, 0);
    }
  }),
  { runs: 50 },
);
