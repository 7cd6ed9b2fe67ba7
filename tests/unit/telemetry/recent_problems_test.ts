import assert from "node:assert/strict";
import type { Facts } from "../../../src/base/failure.ts";
import type { Logger } from "../../../src/telemetry/logger.ts";
import { RecentProblems } from "../../../src/telemetry/recent_problems.ts";

function silentLogger(lines: string[] = []): Logger {
  const write = (msg: string, _facts?: Facts) => void lines.push(msg);
  return { debug: write, info: write, warn: write, error: write, enabled: () => true };
}

Deno.test("problems: warnings and errors are remembered, newest first, and still logged", () => {
  let nowMs = 1_000;
  const lines: string[] = [];
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger(lines));
  log.info("fine");
  log.warn("odd", { upstream: "https://a.example" });
  nowMs = 2_000;
  log.error("bad");
  nowMs = 3_000;
  log.warn("odd", { upstream: "https://a.example", request_id: "7" });

  assert.deepEqual(lines, ["fine", "odd", "bad", "odd"]);
  assert.deepEqual(problems.list(), [
    {
      level: "warn",
      message: "odd",
      facts: { upstream: "https://a.example" },
      count: 2,
      firstAtMs: 1_000,
      lastAtMs: 3_000,
    },
    { level: "error", message: "bad", facts: {}, count: 1, firstAtMs: 2_000, lastAtMs: 2_000 },
  ]);
});

Deno.test("problems: facts that may name our files are left out, long ones are cut", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.error("bad", {
    path: "/var/lib/larder",
    error: "Cannot open /var/lib/larder/db.sqlite",
    detail: "at serve (file:///srv/main.ts:1:2)",
    stack: "Error: at main.ts",
    limit_bytes: 12,
    reason: "x".repeat(1_000),
  });
  assert.deepEqual(problems.list()[0]?.facts, { limitBytes: 12, reason: "x".repeat(200) });
});

Deno.test("problems: clients know the log's hint as the remedy", () => {
  const problems = new RecentProblems(() => 0);
  problems.watch(silentLogger()).warn("odd", { hint: "mend it" });
  assert.deepEqual(problems.list()[0]?.facts, { remedy: "mend it" });
});

Deno.test("problems: there are never more than fifty", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  for (let count = 0; count < 1_000; count++) log.warn("odd", { count });
  const counts = problems.list().map(({ facts }) => facts.count);
  assert.deepEqual([counts.length, counts[0], counts.at(-1)], [50, 999, 950]);
});
