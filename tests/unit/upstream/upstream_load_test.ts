import assert from "node:assert/strict";
import { isOverloaded, nextLoad, NO_LOAD } from "../../../src/upstream/upstream_queue.ts";

const MINUTE_MS = 60_000;
const timeoutMs = 3_000;

Deno.test("load: a slow NAR counts for a minute, and until a quick one follows", () => {
  const slow = nextLoad(NO_LOAD, { type: "nar", tookMs: 1_501, timeoutMs, atMs: 0 });
  assert.equal(isOverloaded(slow, MINUTE_MS - 1), true);
  assert.equal(isOverloaded(slow, MINUTE_MS), false);
  const narinfo = nextLoad(slow, { type: "answer", tookMs: 1, timeoutMs });
  assert.equal(isOverloaded(narinfo, 1), true, "a quick narinfo says nothing of NARs");
  const quick = nextLoad(slow, { type: "nar", tookMs: 10, timeoutMs, atMs: 1 });
  assert.equal(isOverloaded(quick, 2), false);
});

Deno.test("load: a NAR that never began is slow", () => {
  const silent = nextLoad(NO_LOAD, { type: "nar", tookMs: Infinity, timeoutMs, atMs: 0 });
  assert.equal(isOverloaded(silent, 1), true);
});
