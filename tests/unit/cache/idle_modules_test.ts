import assert from "node:assert/strict";
import { IdleModules } from "../../../src/cache/verify/idle_modules.ts";

Deno.test("idle modules: the next file takes a finished one's, and no more are kept", () => {
  const idle = new IdleModules<string>(2);
  assert.equal(idle.take(), undefined);
  for (const module of ["first", "second", "third"]) idle.keep(module);
  assert.deepEqual([idle.take(), idle.take(), idle.take()], ["second", "first", undefined]);
});

Deno.test("idle modules: a quiet time drops all of them, and one with a file does not", () => {
  const idle = new IdleModules<string>(2);
  idle.keep("first");
  idle.dropUnused();
  assert.equal(idle.take(), "first");
  idle.keep("first");
  idle.dropUnused();
  idle.dropUnused();
  assert.equal(idle.take(), undefined);
});
