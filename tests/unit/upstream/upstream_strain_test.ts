import assert from "node:assert/strict";
import { isStrained, nextStrain, NO_STRAIN } from "../../../src/upstream/upstream_strain.ts";

const MINUTE_MS = 60_000;
const timeoutMs = 3_000;

Deno.test("strain: a slow NAR counts for a minute, and until a quick one follows", () => {
  const slow = nextStrain(NO_STRAIN, { type: "nar", tookMs: 1_501, timeoutMs, atMs: 0 });
  assert.equal(isStrained(slow, MINUTE_MS - 1), true);
  assert.equal(isStrained(slow, MINUTE_MS), false);
  const narinfo = nextStrain(slow, { type: "answer", tookMs: 1, timeoutMs });
  assert.equal(isStrained(narinfo, 1), true, "a quick narinfo says nothing of NARs");
  const quick = nextStrain(slow, { type: "nar", tookMs: 10, timeoutMs, atMs: 1 });
  assert.equal(isStrained(quick, 2), false);
});

Deno.test("strain: a NAR that never began is slow", () => {
  const silent = nextStrain(NO_STRAIN, { type: "nar", tookMs: Infinity, timeoutMs, atMs: 0 });
  assert.equal(isStrained(silent, 1), true);
});
