import assert from "node:assert/strict";
import { Tokens } from "../../../../src/http/access/tokens.ts";

const basic = (pair: string) => `Basic ${btoa(pair)}`;

Deno.test("tokens: each right one has its holder, again and again, and no wrong one has", () => {
  const tokens = new Tokens([
    { name: "reader", role: "read", secret: "first-secret" },
    { name: "ci", role: "write", secret: "second-secret" },
    { name: "both", role: "admin", secret: "first-secret" },
  ]);
  const reader = { name: "both", role: "admin" };
  const ci = { name: "ci", role: "write" };
  for (let count = 0; count < 2; count++) {
    assert.deepEqual(tokens.callerOf("Bearer first-secret"), reader);
    assert.deepEqual(tokens.callerOf("bearer  second-secret"), ci);
    assert.deepEqual(tokens.callerOf(basic("anybody:second-secret")), ci);
    assert.deepEqual(tokens.callerOf(basic(":second-secret")), ci);
    for (const secret of ["", "second-secre", "second-secrets", "first-secret:"]) {
      assert.equal(tokens.callerOf(`Bearer ${secret}`), undefined, secret);
      assert.equal(tokens.callerOf(basic(`ci:${secret}`)), undefined, secret);
    }
    assert.equal(tokens.callerOf(basic("second-secret")), undefined);
    assert.equal(tokens.callerOf("Digest second-secret"), undefined);
    assert.equal(tokens.callerOf("second-secret"), undefined);
  }
  assert.deepEqual([...tokens.roles].sort(), ["admin", "read", "write"]);
});
