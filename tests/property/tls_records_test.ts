import assert from "node:assert/strict";
import fc from "fast-check";
import { TlsRecords } from "../../src/http/relay/tls_records.ts";
import { checkProperty } from "../support/property.ts";

const DATA = 23;
const HEADER_BYTES = 5;

/** Records of change, alert, handshake and data, whose bodies look like records of data. */
const record = fc.tuple(fc.constantFrom(20, 21, 22, 22, 22, DATA), fc.nat({ max: 300 }))
  .map(([type, length]) => ({
    type,
    bytes: Uint8Array.of(
      type,
      3,
      3,
      length >> 8,
      length & 255,
      ...new Uint8Array(length).fill(DATA),
    ),
  }));

checkProperty(
  "TLS records: data is seen with the header that announces it, however the bytes are cut",
  fc.property(fc.array(record, { maxLength: 8 }), fc.array(fc.nat({ max: 90 })), (all, cuts) => {
    const bytes = Uint8Array.from(all.flatMap((one) => [...one.bytes]));
    const index = all.findIndex(({ type }) => type === DATA);
    const before = all.slice(0, index).reduce((sum, one) => sum + one.bytes.length, 0);
    const seenAt = index < 0 ? Infinity : before + HEADER_BYTES;
    const records = new TlsRecords();
    let taken = 0;
    for (const cut of [...cuts, bytes.length]) {
      const piece = bytes.subarray(taken, taken + cut);
      records.take(piece);
      taken += piece.length;
      assert.equal(records.hasData, taken >= seenAt);
    }
  }),
);
