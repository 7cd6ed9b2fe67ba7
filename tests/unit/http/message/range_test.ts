import assert from "node:assert/strict";
import { readRange } from "../../../../src/http/routes/nar.ts";

const WHOLE = { kind: "whole" };
const BEYOND = { kind: "beyond" };
const part = (start: number, end: number) => ({ kind: "part", start, end });

/** Headers against a file of 100 bytes (RFC 9110, 14.1.2). */
const CASES: readonly (readonly [header: string | null, reading: unknown])[] = [
  [null, WHOLE],
  ["bytes=0-", part(0, 100)],
  ["bytes=10-", part(10, 100)],
  ["bytes=10-19", part(10, 20)],
  ["bytes=99-99", part(99, 100)],
  ["bytes=50-1000", part(50, 100)],
  ["bytes=-30", part(70, 100)],
  ["bytes=-1000", part(0, 100)],
  [" Bytes=1-2 ", part(1, 3)],
  ["bytes=100-", BEYOND],
  ["bytes=100-200", BEYOND],
  ["bytes=-0", BEYOND],
  ["bytes=20-10", WHOLE],
  ["bytes=0-1,5-6", WHOLE],
  ["bytes=", WHOLE],
  ["bytes=-", WHOLE],
  ["bytes=a-b", WHOLE],
  ["bytes = 1-2", WHOLE],
  ["bytes=1-2-3", WHOLE],
  ["items=0-1", WHOLE],
  ["bytes=99999999999999999999-", BEYOND],
  ["bytes=0-99999999999999999999", part(0, 100)],
];

for (const [header, reading] of CASES) {
  Deno.test(`readRange: ${JSON.stringify(header)} of 100 bytes`, () => {
    assert.deepEqual(readRange(header, 100), reading);
  });
}

Deno.test("readRange: of an empty file every start is beyond", () => {
  assert.deepEqual(readRange("bytes=0-", 0), BEYOND);
  assert.deepEqual(readRange("bytes=-5", 0), BEYOND);
  assert.deepEqual(readRange(null, 0), WHOLE);
});
