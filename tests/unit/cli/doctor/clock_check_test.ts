import assert from "node:assert/strict";
import { checkClock } from "../../../../src/cli/doctor/clock_check.ts";

const NOW_MS = Date.UTC(2026, 10, 22);

function marksOf(clockLeadMs: readonly number[], newestMs?: number): readonly string[] {
  return checkClock({ nowMs: NOW_MS, clockLeadMs, newestMs }).map(({ mark }) => mark);
}

Deno.test("doctor: the clock is compared with the upstream that agrees best", () => {
  assert.deepEqual(marksOf([]), ["not checked"]);
  assert.deepEqual(marksOf([900_000, -900]), ["ok"]);
  assert.deepEqual(marksOf([20_000]), ["warning"]);
  assert.deepEqual(marksOf([-600_000]), ["failed"]);
});

Deno.test("doctor: times of the future in the storage are a warning", () => {
  assert.deepEqual(marksOf([0], NOW_MS - 1), ["ok"]);
  assert.deepEqual(marksOf([0], NOW_MS + 3_600_000), ["ok", "warning"]);
});

Deno.test("doctor: a wrong clock comes with its direction and what to do", () => {
  const [finding] = checkClock({ nowMs: NOW_MS, clockLeadMs: [-600_000], newestMs: undefined });
  assert.equal(finding?.fact, "10m00s behind the upstreams");
  assert.match(finding?.advice ?? "", /NTP/);
});

Deno.test("doctor: a clock that differs from the database's is a warning", () => {
  const facts = { nowMs: NOW_MS, clockLeadMs: [0], newestMs: undefined };
  const findings = checkClock({ ...facts, leadOverDatabaseMs: -7_200_000 });
  assert.deepEqual(findings.map(({ mark }) => mark), ["ok", "warning"]);
  assert.equal(findings[1]?.fact, "2h00m behind the database's server");
});
