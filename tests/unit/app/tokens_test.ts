import assert from "node:assert/strict";
import { warnOfShortTokens } from "../../../src/app/tokens.ts";

Deno.test("tokens: a short one is warned of by its name, and never shown", () => {
  const lines: unknown[] = [];
  const log = { warn: (...line: readonly unknown[]) => void lines.push(line) };
  const long = { name: "alice", role: "admin", secret: "larder-s3same-sesame" } as const;
  warnOfShortTokens([long, { ...long, name: "bob", secret: "s3same" }], log);
  const hint = "make a longer one with larder token create";
  assert.deepEqual(lines, [["token is short", { token: "bob", role: "admin", hint }]]);
});
