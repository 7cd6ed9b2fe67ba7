import assert from "node:assert/strict";
import { checkKey, type KeyFacts } from "../../../../src/cli/doctor/key_check.ts";
import type { ServerState } from "../../../../src/cli/doctor/server_check.ts";

const OWN = "cache-1:own";

const signing = (publicKey: string | null | undefined): ServerState => (
  { kind: "running", publicKey, stats: undefined, proxyHeaders: [] }
);
const FACTS: KeyFacts = {
  path: "/key",
  publicKey: OWN,
  problem: undefined,
  isUsed: true,
  server: { kind: "silent", reason: "refused" },
};

for (
  const [what, facts, mark] of [
    ["of a stopped server", {}, "ok"],
    ["of the running server", { server: signing(OWN) }, "ok"],
    ["that the server hides without a token", { server: signing(undefined) }, "ok"],
    ["that the server does not use", { server: signing("cache-1:other") }, "failed"],
    ["of a server that does not sign", { server: signing(null) }, "failed"],
    ["that is missing in a new storage", { publicKey: undefined, isUsed: false }, "warning"],
    ["that is missing in a used storage", { publicKey: undefined }, "failed"],
    ["that is no key", { publicKey: undefined, problem: "Cannot use it" }, "failed"],
  ] as const
) {
  Deno.test(`doctor: a signing key ${what} is ${mark}`, () => {
    assert.deepEqual(checkKey({ ...FACTS, ...facts }).map((finding) => finding.mark), [mark]);
  });
}
