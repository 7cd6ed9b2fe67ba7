import assert from "node:assert/strict";
import fc from "fast-check";
import { readCachedResponse } from "../../src/cache/import/nginx/nginx_source.ts";
import { checkProperty } from "../support/property.ts";

const word = fc.stringMatching(/^[A-Za-z0-9-]{1,20}$/);
const value = fc.stringMatching(/^[!-~]{1,30}$/);
/** nginx's own record: whatever its platform makes of it, but no key. */
const record = fc.uint8Array({ maxLength: 400 }).filter((bytes) =>
  !latin1(bytes).includes("\nKEY")
);

const parts = fc.record({
  record,
  key: fc.stringMatching(/^[!-~]{1,100}$/),
  status: fc.integer({ min: 100, max: 599 }),
  headers: fc.uniqueArray(fc.tuple(word, value), { selector: ([name]) => name.toLowerCase() }),
  body: fc.uint8Array({ maxLength: 100 }),
});

checkProperty(
  "nginx file: the body begins behind any record, key and headers",
  fc.property(parts, ({ record, key, status, headers, body }) => {
    const lines = headers.map(([name, text]) => `${name}: ${text}\r\n`).join("");
    const head = `\nKEY: ${key}\nHTTP/1.1 ${status} OK\r\n${lines}\r\n`;
    const file = new Uint8Array([...record, ...new TextEncoder().encode(head), ...body]);
    const response = readCachedResponse(file);
    assert.deepEqual([response?.key, response?.status], [key, status]);
    const pairs = headers.map(([name, text]) => [name.toLowerCase(), text] as const);
    assert.deepEqual(response?.headers, new Map(pairs));
    assert.deepEqual([...file.subarray(response?.bodyStart)], [...body]);
  }),
);

const pieces = fc.constantFrom("\nKEY: ", "\n", "HTTP/1.1 200 OK", "\r\n\r\n", "a: b", ":");
const anything = fc.array(fc.oneof(pieces, fc.string())).map((all) => all.join(""));

checkProperty(
  "nginx file: no bytes make the reader throw",
  fc.property(anything, (written) => {
    const bytes = new TextEncoder().encode(written);
    const response = readCachedResponse(bytes);
    assert.ok(response === undefined || response.bodyStart <= bytes.length);
  }),
);

function latin1(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}
