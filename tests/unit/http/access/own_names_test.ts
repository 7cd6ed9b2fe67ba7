import assert from "node:assert/strict";
import { ownNamesOf, searchDomainsIn } from "../../../../src/app/own_names.ts";
import { resolveSettings } from "../../../../src/config/settings.ts";
import { OwnNames } from "../../../../src/http/access/own_names.ts";
import { inputsOf } from "../../../support/config_inputs.ts";

const NAMES = new OwnNames(["cache.example.org"], {
  names: ["NAS.attic.example"],
  searchDomains: ["branch.example.com"],
});

for (
  const name of [
    ...[
      "nas",
      "nas.attic.example",
      "nas.lan",
      "nas.local",
      "nas.home",
      "nas.home.arpa",
      "nas.internal",
    ],
    ...["nas.localdomain", "nas.fritz.box", "nas.tail1234.ts.net", "nas.branch.example.com"],
    ...["localhost", "cache.example.org", "192.0.2.7", "[2001:db8::1]:8501"],
    ...["NAS.LAN:8501", "nas.local."],
  ]
) {
  Deno.test(`own names: ${name} is the cache on the machine nas`, () => {
    assert.ok(NAMES.has(name));
  });
}

for (
  const name of [
    ...["evil.example", "evil.lan", "nas.evil.lan", "nas.example", "evil.nas.lan"],
    ...["nas.lan.evil.example", "nas.ts.net", "nas.a.b.ts.net", "evil.tail1234.ts.net"],
    ...["nas.branch.example.com.evil.example", "xnas.lan", "nas.box", "", "nas.lan/x", "nas.lan:x"],
  ]
) {
  Deno.test(`own names: "${name}" is not the cache on the machine nas`, () => {
    assert.ok(!NAMES.has(name));
  });
}

Deno.test("own names: --cache-hostname counts below a home's domain, unless it has a domain", async () => {
  const namesOf = (hostname: string) =>
    ownNamesOf(resolveSettings(inputsOf({ args: [`--cache-hostname=${hostname}`] })).settings);
  const short = await namesOf("Attic");
  for (const name of ["attic", "attic.lan", "attic.fritz.box", "attic.tail1234.ts.net"]) {
    assert.ok(short.has(name), name);
  }
  const long = await namesOf("attic.lan");
  assert.ok(long.has("attic.lan"));
  for (const name of ["attic", "attic.local", "attic.lan.lan", "attic.tail1234.ts.net"]) {
    assert.ok(!long.has(name), name);
  }
});

Deno.test("own names: the domains of resolv.conf are those of its last line", () => {
  const text = "# domain no.example\nnameserver 192.0.2.1\ndomain old.example\n" +
    "search lan\tattic.example. # the router's\noptions edns0\n";
  assert.deepEqual(searchDomainsIn(text), ["lan", "attic.example."]);
  assert.deepEqual(searchDomainsIn("search .\n"), []);
  assert.deepEqual(searchDomainsIn("nameserver 192.0.2.1"), []);
});
