import assert from "node:assert/strict";
import { hintFor } from "../../../src/upstream/failure_hints.ts";

Deno.test("hint: credentials that an upstream refuses are wrong, not missing", () => {
  const refused = { reason: "status", status: 401, detail: "HTTP status 401" } as const;
  assert.match(hintFor(refused, false), /^give its credentials with --netrc-file$/);
  assert.match(hintFor(refused, true), /^correct its credentials .*--netrc-file.* URL/);
});

Deno.test("hint: a server with an authority's certificate needs another one", () => {
  const tls = "client error (Connect): invalid peer certificate: ";
  const hint = (detail: string) => hintFor({ reason: "unreachable", detail: tls + detail }, false);
  assert.match(hint("UnknownIssuer"), /--cache-upstream-ca-file/);
  assert.match(hint("Other(OtherError(CaUsedAsEndEntity))"), /certificate with CA:FALSE/);
  assert.doesNotMatch(hint("Other(OtherError(CaUsedAsEndEntity))"), /--cache-upstream-ca-file/);
});
