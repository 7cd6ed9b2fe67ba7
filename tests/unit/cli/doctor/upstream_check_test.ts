import assert from "node:assert/strict";
import type { UpstreamProbe } from "../../../../src/app/doctor/probe_upstreams.ts";
import { checkUpstreams } from "../../../../src/cli/doctor/upstream_check.ts";

const PROBE: UpstreamProbe = {
  url: "https://cache.example.org",
  reach: { kind: "reached", latencyMs: 30, hasInfo: true },
  signature: { kind: "trusted", keyName: "cache-1" },
  clockLeadMs: 0,
  headerTimeoutMs: 3_000,
};
const unreachable = (reason: string) => ({ reach: { kind: "unreachable", reason } } as const);

for (
  const [what, probe, marks, advice] of [
    ["as it should be", {}, ["ok", "ok"], ""],
    [
      "slow",
      { reach: { kind: "reached", latencyMs: 1_600, hasInfo: true } },
      ["warning", "ok"],
      "network",
    ],
    [
      "without a nix-cache-info",
      { reach: { kind: "reached", latencyMs: 30, hasInfo: false }, signature: undefined },
      ["warning", "not checked"],
      "store path",
    ],
    ["down", unreachable("connection refused"), ["failed"], "firewall"],
    ["late", unreachable("connecting took over 3000 ms"), ["failed"], "timeout"],
    [
      "of an unknown authority",
      unreachable("invalid peer certificate: UnknownIssuer"),
      ["failed"],
      "--cache-upstream-ca-file",
    ],
    ["closed", { reach: { kind: "refused", reason: "HTTP status 401" } }, ["failed"], "netrc"],
    ["without a known path", { signature: undefined }, ["ok", "not checked"], "store path"],
    [
      "signing with an unknown key",
      { signature: { kind: "untrusted", reason: "it is signed by x" } },
      ["ok", "failed"],
      "--cache-upstream-public-key",
    ],
    [
      "signing with another key than the one given under its name",
      { signature: { kind: "untrusted", reason: "it differs", wrongKey: "cache-1" } },
      ["ok", "failed"],
      "the key cache-1 that the upstream publishes: they differ",
    ],
  ] as const
) {
  Deno.test(`doctor: an upstream ${what} is ${marks.join(", ")}`, () => {
    const findings = checkUpstreams({ probes: [{ ...PROBE, ...probe }], requiresSignature: true });
    assert.deepEqual(findings.map(({ mark }) => mark), marks);
    assert.ok((findings.at(-1)?.advice ?? findings[0]?.advice ?? "").includes(advice));
  });
}

Deno.test("doctor: an unknown signature is a warning where none is required", () => {
  const probes = [{ ...PROBE, signature: { kind: "untrusted", reason: "nobody" } as const }];
  const [, signature] = checkUpstreams({ probes, requiresSignature: false });
  assert.equal(signature?.mark, "warning");
});

Deno.test("doctor: an upstream without a nix-cache-info may have a mistyped path", () => {
  const reach = { kind: "reached", latencyMs: 1_600, hasInfo: false } as const;
  const [finding] = checkUpstreams({ probes: [{ ...PROBE, reach }], requiresSignature: true });
  assert.match(finding?.fact ?? "", /no nix-cache-info/);
  assert.match(finding?.advice ?? "", /path of its URL/);
});
