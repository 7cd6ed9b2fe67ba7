import assert from "node:assert/strict";
import fc from "fast-check";
import { classOfAddress } from "../../../src/upstream/http/upstream_attempts.ts";
import { checkProperty } from "../../support/property.ts";

const CLASSES = {
  "loopback": ["127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::", "::1"],
  "link-local": ["169.254.0.1", "169.254.169.254", "fe80::1", "febf::1", "fe80::1%eth0"],
  "private": [
    ...["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1"],
    ...["fc00::1", "fd12:3456::1", "fec0::1"],
  ],
  "reserved": ["192.0.0.1", "198.19.0.1", "224.0.0.1", "255.255.255.255", "ff02::1", "2001::1"],
  "public": [
    ...["1.1.1.1", "9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.0", "172.15.0.1"],
    ...["172.32.0.1", "100.63.255.255", "100.128.0.0", "169.253.0.1", "192.167.0.1"],
    ...["2606:4700::1111", "2001:db8::1", "fe00::1", "64:ff9b::1.1.1.1", "2002:101:101::"],
  ],
} as const;

for (const [name, addresses] of Object.entries(CLASSES)) {
  Deno.test(`address classes: ${addresses.join(", ")} are ${name}`, () => {
    assert.deepEqual(addresses.map(classOfAddress), addresses.map(() => name));
  });
}

const ipv4 = fc.oneof(
  fc.ipV4(),
  fc.constantFrom(...Object.values(CLASSES).flat().filter((text) => /^[0-9.]+$/.test(text))),
);

checkProperty(
  "address classes: an IPv6 address that leads to an IPv4 one has its class",
  fc.property(ipv4, (address) => {
    const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
    const [high, low] = [(a << 8 | b).toString(16), (c << 8 | d).toString(16)];
    const expected = classOfAddress(address);
    const ways = [
      `::ffff:${address}`,
      `::ffff:${high}:${low}`,
      `0:0:0:0:0:FFFF:${high}:${low}`,
      `64:ff9b::${address}`,
      `2002:${high}:${low}::1`,
      // Else it is one of those that IPv6 has for itself.
      ...(high === "0" ? [] : [`::${address}`]),
    ];
    assert.deepEqual(ways.map(classOfAddress), ways.map(() => expected));
  }),
);
