import assert from "node:assert/strict";
import { isIP } from "node:net";
import fc from "fast-check";
import { addressRange } from "../../src/config/kinds/addresses.ts";
import { TrustedProxies } from "../../src/http/proxy/trusted_proxies.ts";
import { checkProperty } from "../support/property.ts";

const proxies = new TrustedProxies(
  ["10.0.0.0/8", "2001:db8:ffff::/48"].map((text) => addressRange.parse(text)),
);

const proxy = fc.constantFrom("10.0.0.1", "10.255.0.7", "2001:db8:ffff::1", "unix");
const client = fc.constantFrom("192.0.2.7", "11.0.0.1", "2001:db8::1", "127.0.0.1", "::1");
const junk = fc.constantFrom(
  "unknown",
  "_x",
  "",
  "10.0.0",
  "a,b",
  '"',
  "for=10.0.0.1",
  "10.0.0.1;",
);
const lie = fc.oneof(proxy.filter((one) => one !== "unix"), client, junk, fc.string());

const headersOf = (fields: Readonly<Record<string, string | undefined>>) => ({
  get: (name: string) => fields[name] ?? null,
});
const node = (address: string) => address.includes(":") ? `"[${address}]"` : address;

/** A proxy adds the address that it saw, behind the text that a client wrote. */
const chain = fc.record({
  lies: fc.array(lie, { maxLength: 3 }),
  client,
  through: fc.array(proxy.filter((one) => one !== "unix"), { maxLength: 3 }),
  peer: proxy,
});

checkProperty(
  "trusted proxies: a client behind any number of them is itself, whatever it writes",
  fc.property(chain, ({ lies, client, through, peer }) => {
    const forwardedFor = [...lies, client, ...through].join(", ");
    const fields = headersOf({ "x-forwarded-for": forwardedFor });
    assert.equal(proxies.clientOf(peer, fields), client);
  }),
);

checkProperty(
  "trusted proxies: the same by Forwarded, where the client writes elements",
  fc.property(chain, ({ lies, client, through, peer }) => {
    const written = lies.filter((one) => !/["\\]/.test(one)).map((one) => `for=${one}`);
    const added = [client, ...through].map((one) => `for=${node(one)};proto=https`);
    const fields = headersOf({ forwarded: [...written, ...added].join(", ") });
    assert.equal(proxies.clientOf(peer, fields), client);
  }),
);

checkProperty(
  "trusted proxies: a peer that is none is the client, whatever it writes",
  fc.property(client, fc.array(lie), (peer, lies) => {
    const fields = headersOf({ "x-forwarded-for": lies.join(","), "forwarded": lies.join(";") });
    assert.equal(proxies.clientOf(peer, fields), peer);
  }),
);

checkProperty(
  "trusted proxies: a field that the proxy does not set never names another client",
  fc.property(client, proxy, lie, (from, peer, lied) => {
    const both = headersOf({ "x-forwarded-for": from, "forwarded": `for=${lied}` });
    assert.ok(new Set<string>([from, peer]).has(proxies.clientOf(peer, both)));
  }),
);

checkProperty(
  "trusted proxies: any text gives an address",
  fc.property(proxy, fc.option(fc.string()), fc.option(fc.string()), (peer, one, other) => {
    const fields = headersOf({
      "x-forwarded-for": one ?? undefined,
      "forwarded": other ?? undefined,
    });
    const found = proxies.clientOf(peer, fields);
    assert.ok(found === peer || isIP(found) !== 0, found);
  }),
);

Deno.test("trusted proxies: ranges and single addresses, of both families, and the socket", () => {
  const trusts = (range: string, peer: string) =>
    new TrustedProxies([addressRange.parse(range)]).trusts(peer);
  const right = [
    ...[["10.0.0.0/8", "10.9.8.7"], ["10.1.2.3/8", "10.0.0.1"], ["192.0.2.7", "192.0.2.7"]],
    ...[["2001:db8::/32", "2001:db8:1::9"], ["::1", "::1"], ["0.0.0.0/0", "203.0.113.1"]],
    ...[["unix", "unix"], ["192.0.2.7", "unix"]],
  ];
  const wrong = [
    ...[["10.0.0.0/8", "11.0.0.0"], ["192.0.2.7", "192.0.2.8"], ["2001:db8::/32", "2001:db9::"]],
    ...[["0.0.0.0/0", "::1"], ["::/0", "192.0.2.7"], ["unix", "127.0.0.1"], ["10.0.0.0/8", ""]],
  ];
  for (const [range = "", peer = ""] of right) assert.ok(trusts(range, peer), `${range} ${peer}`);
  for (const [range = "", peer = ""] of wrong) assert.ok(!trusts(range, peer), `${range} ${peer}`);
  for (
    const range of ["10.0.0.0/33", "::/129", "10.0.0", "a.example", "::ffff:10.0.0.1", "fe80::1%2"]
  ) {
    assert.throws(() => addressRange.parse(range), /an address range such as/, range);
  }
});
