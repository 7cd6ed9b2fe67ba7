import assert from "node:assert/strict";
import { isIP } from "node:net";
import fc from "fast-check";
import { isOfSameOrigin } from "../../src/http/access/access_rules.ts";
import { OwnNames } from "../../src/http/access/own_names.ts";
import { checkProperty } from "../support/property.ts";

const NAMES = ["cache.test", "larder"];

/** Hosts, right and wrong ones, that have a lot in common. */
const host = fc.array(
  fc.constantFrom(
    ...[
      "cache.test",
      "larder",
      "localhost",
      "evil",
      "127.0.0.1",
      "[::1]",
      "[",
      "]",
      "::1",
      "127.1",
    ],
    ...[
      ".",
      ":",
      ":80",
      ":443",
      ":8501",
      ":99999",
      "@",
      "/",
      "\\",
      "?",
      "#",
      "%",
      "_",
      "-",
      " ",
      ",",
    ],
    ...["A", "K", "\u212a", "0x7f000001", "2130706433"],
  ),
  { maxLength: 4 },
).map((parts) => parts.join(""));
const scheme = fc.constantFrom("http://", "https://", "HTTP://", "file://", "http:", "//", "");

const headersOf = (fields: Readonly<Record<string, string>>) => ({
  headers: { get: (name: string) => fields[name] ?? null },
});

checkProperty(
  "access: an origin that is taken for ours is the address of the request",
  fc.property(scheme, host, host, fc.boolean(), (prefix, one, other, usesTls) => {
    const origin = `${prefix}${one}`;
    if (!isOfSameOrigin(headersOf({ origin, host: other }), usesTls)) return;
    const from = new URL(origin);
    assert.equal(from.host, new URL(`${from.protocol}//${other}`).host);
    assert.equal(`${from.protocol}//${one.toLowerCase()}`, origin.toLowerCase());
    assert.deepEqual([from.username, from.password, from.pathname], ["", "", "/"]);
    assert.ok(from.protocol === "https:" || from.protocol === "http:" && !usesTls);
  }),
);

checkProperty(
  "access: every host with its own scheme and port is its own origin",
  fc.property(
    fc.constantFrom("cache.test", "a.b-c", "localhost", "127.0.0.1", "[::1]", "[2001:db8::7]"),
    fc.option(fc.integer({ min: 1, max: 65_535 })),
    (name, port) => {
      const asked = port === null ? name : `${name}:${port}`;
      const { origin } = new URL(`https://${asked}`);
      assert.ok(isOfSameOrigin(headersOf({ origin, host: asked }), true));
      assert.ok(!isOfSameOrigin(headersOf({ origin: `${origin}0`, host: asked }), true));
    },
  ),
);

checkProperty(
  "access: a host that is taken for ours is an address, or one of our names",
  fc.property(host, (given) => {
    if (!new OwnNames(NAMES).has(given)) return;
    const { hostname, pathname, username } = new URL(`http://${given}`);
    const name = hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
    assert.ok(isIP(name) !== 0 || ["localhost", ...NAMES].includes(name), given);
    assert.deepEqual([pathname, username], ["/", ""]);
  }),
);
