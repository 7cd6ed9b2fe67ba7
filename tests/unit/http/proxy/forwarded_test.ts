import assert from "node:assert/strict";
import {
  type Hops,
  readForwarded,
  readForwardedFor,
} from "../../../../src/http/proxy/trusted_proxies.ts";

const NONE = undefined;

const FORWARDED_FOR: readonly (readonly [field: string, hops: Hops])[] = [
  ["192.0.2.7", ["192.0.2.7"]],
  ["192.0.2.7, 198.51.100.1", ["192.0.2.7", "198.51.100.1"]],
  ["192.0.2.7:4711,\t[2001:db8::1]:80", ["192.0.2.7", "2001:db8::1"]],
  ["2001:DB8::1, [2001:db8::2]", ["2001:db8::1", "2001:db8::2"]],
  ["::ffff:192.0.2.7", ["192.0.2.7"]],
  ["unknown, _hidden, a.example, 192.0.2, 192.0.2.256, ", [NONE, NONE, NONE, NONE, NONE, NONE]],
  ["192.0.2.7:http, [192.0.2.7], 2001:db8::1]:80, fe80::1%eth0", [NONE, NONE, NONE, NONE]],
  ["192.0.2.7 198.51.100.1", [NONE]],
];

const FORWARDED: readonly (readonly [field: string, hops: Hops])[] = [
  ["for=192.0.2.60;proto=http;by=203.0.113.43", ["192.0.2.60"]],
  ["for=192.0.2.43, for=198.51.100.17", ["192.0.2.43", "198.51.100.17"]],
  ['For="[2001:db8:cafe::17]:4711"', ["2001:db8:cafe::17"]],
  ['by=_x; for="192.0.2.1:80" ;host=a', ["192.0.2.1"]],
  ['host="a,for=192.0.2.9";for=192.0.2.1', ["192.0.2.1"]],
  ['host="a\\",for=192.0.2.9";for=192.0.2.1', ["192.0.2.1"]],
  ['for="_gazonk", for=unknown, by=192.0.2.1', [NONE, NONE, NONE]],
  ["for=192.0.2.1;for=192.0.2.2", [NONE]],
  ["", [NONE]],
  ['for="192.0.2.1', [NONE]],
  ['for=192.0.2.1, "', [NONE]],
];

for (const [field, hops] of FORWARDED_FOR) {
  Deno.test(`X-Forwarded-For: ${JSON.stringify(field)}`, () => {
    assert.deepEqual(readForwardedFor(field), hops);
  });
}

for (const [field, hops] of FORWARDED) {
  Deno.test(`Forwarded: ${JSON.stringify(field)}`, () => {
    assert.deepEqual(readForwarded(field), hops);
  });
}
