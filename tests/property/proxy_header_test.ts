import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { isIP } from "node:net";
import fc from "fast-check";
import { PROXY_HEADER_BYTES_MAX, readProxyHeader } from "../../src/http/proxy/proxied_clients.ts";
import { proxyHeader, SIGNATURE } from "../support/proxy_header.ts";
import { checkProperty } from "../support/property.ts";

const address = fc.oneof(fc.ipV4(), fc.ipV6());
const port = fc.integer({ min: 0, max: 65_535 });
const extra = fc.uint8Array({ maxLength: 300 });
const payload = fc.uint8Array({ maxLength: 50 });

/** An address as every other part of larder writes it. */
function canonical(given: string): string {
  if (isIP(given) === 4) return given;
  const text = new URL(`http://[${given}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(text) ?? [];
  if (high === undefined || low === undefined) return text;
  const bytes = [high, low].flatMap((part) => [parseInt(part, 16) >> 8, parseInt(part, 16) & 255]);
  return bytes.join(".");
}

checkProperty(
  "PROXY header: any client, with any further facts, is read, and the bytes behind it stay",
  fc.property(address, port, extra, payload, (from, fromPort, facts, behind) => {
    const header = proxyHeader({ from, port: fromPort, facts });
    assert.deepEqual(readProxyHeader(Buffer.concat([header, behind])), {
      kind: "header",
      length: header.length,
      client: { transport: "tcp", hostname: canonical(from), port: fromPort },
    });
  }),
);

checkProperty(
  "PROXY header: every part of one wants more, and no part is taken for another client",
  fc.property(address, extra, fc.double({ min: 0, max: 1, noNaN: true }), (from, facts, share) => {
    const header = proxyHeader({ from, port: 1, facts });
    const part = header.subarray(0, Math.floor(share * (header.length - 1)));
    assert.deepEqual(readProxyHeader(part), { kind: "more" });
  }),
);

checkProperty(
  "PROXY header: any bytes end in a client, a wish for more, or a refusal",
  fc.property(fc.uint8Array({ maxLength: 60 }), fc.boolean(), (bytes, isSigned) => {
    const given = isSigned ? Buffer.concat([SIGNATURE, bytes]) : bytes;
    const read = readProxyHeader(given);
    if (read.kind === "more") assert.ok(given.length < PROXY_HEADER_BYTES_MAX);
    if (read.kind === "header") {
      assert.ok(read.length <= given.length);
      if (read.client !== undefined) assert.notEqual(isIP(read.client.hostname), 0);
    }
    if (!isSigned && given.length >= SIGNATURE.length) assert.equal(read.kind, "refused");
  }),
);

Deno.test("PROXY header: a proxy that speaks for itself names no client", () => {
  for (const change of [{ command: 0 }, { family: 0x00 }, { family: 0x12 }, { family: 0x31 }]) {
    const header = proxyHeader({ from: "192.0.2.7", port: 1, ...change });
    assert.deepEqual(readProxyHeader(header), { kind: "header", length: header.length });
  }
});

Deno.test("PROXY header: other versions, other protocols and wrong lengths are refused", () => {
  const of = (bytes: Uint8Array) => {
    const read = readProxyHeader(bytes);
    return read.kind === "refused" ? read.reason : read.kind;
  };
  const text = (given: string) => of(new TextEncoder().encode(given));
  const right = { from: "192.0.2.7", port: 1 };
  assert.equal(
    text("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n"),
    "PROXY header of version 1; send version 2",
  );
  assert.equal(text("PROX"), "more");
  assert.equal(text("GET / HTTP/1.1\r\n"), "no PROXY header");
  assert.equal(text("\r\n\r\nGET / HTTP/1.1\r\n"), "no PROXY header");
  assert.equal(text("\x16\x03\x01"), "no PROXY header");
  assert.equal(of(proxyHeader({ ...right, version: 1 })), "PROXY header of an unknown version");
  assert.equal(of(proxyHeader({ ...right, command: 2 })), "PROXY header of an unknown version");
  assert.equal(of(proxyHeader({ ...right, length: 4 })), "PROXY header too short");
  assert.equal(of(proxyHeader({ ...right, length: 60_000 })), "PROXY header too long");
});
