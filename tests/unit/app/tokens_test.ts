import assert from "node:assert/strict";
import { warnOfSharedTokens, warnOfShortTokens } from "../../../src/app/tokens.ts";

Deno.test("tokens: a short one is warned of by its name, and never shown", () => {
  const lines: unknown[] = [];
  const log = { event: (...line: readonly unknown[]) => void lines.push(line) };
  const long = { name: "alice", role: "admin", secret: "larder-s3same-sesame" } as const;
  warnOfShortTokens([long, { ...long, name: "bob", secret: "s3same" }], log);
  assert.deepEqual(lines, [["token-short", { token: "bob", role: "admin" }]]);
});

Deno.test("tokens: one secret for two roles is warned of by name, and never shown", () => {
  const lines: unknown[] = [];
  const log = { event: (...line: readonly unknown[]) => void lines.push(line) };
  const [secret, other] = ["larder-s3same-sesame", "larder-another-sesame"];
  warnOfSharedTokens([
    { name: "ci", role: "write", secret },
    { name: "laptop", role: "read", secret: other },
    { name: "desktop", role: "read", secret: other },
    { name: "admin", role: "admin", secret },
  ], log);
  assert.deepEqual(lines, [["token-of-several-roles", { tokens: "ci (write), admin (admin)" }]]);
});
