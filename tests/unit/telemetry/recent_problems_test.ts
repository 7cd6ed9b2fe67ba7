import assert from "node:assert/strict";
import type { Facts } from "../../../src/base/failure.ts";
import type { Logger } from "../../../src/telemetry/logger.ts";
import { PROBLEM_KINDS } from "../../../src/telemetry/problem_kinds.ts";
import { RecentProblems } from "../../../src/telemetry/recent_problems.ts";

const UPSTREAM = { upstream: "https://a.example" };

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
  log.warn("odd", UPSTREAM);
  nowMs = 2_000;
  log.error("bad");
  nowMs = 3_000;
  log.warn("odd", { ...UPSTREAM, request_id: "7" });

  assert.deepEqual(lines, ["fine", "odd", "bad", "odd"]);
  const odd = { level: "warn", message: "odd", facts: UPSTREAM, count: 2 };
  const bad = { level: "error", message: "bad", facts: {}, count: 1 };
  assert.deepEqual(problems.list(), [
    { ...odd, firstAtMs: 1_000, lastAtMs: 3_000, overAtMs: undefined },
    { ...bad, firstAtMs: 2_000, lastAtMs: 2_000, overAtMs: undefined },
  ]);
});

Deno.test("problems: a kind has one row for each upstream, until it is over", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs++);
  const log = problems.watch(silentLogger());
  log.warn("upstream does not answer", { ...UPSTREAM, hint: "check it" });
  log.warn("upstream is down", UPSTREAM);
  log.warn("upstream failed", { upstream: "https://b.example" });
  const shown = () =>
    problems.list().map(({ message, facts, count, overAtMs }) => [
      ...[message, facts["upstream"], facts["hint"]],
      ...[count, overAtMs],
    ]);
  assert.deepEqual(shown(), [
    ["upstream failed", "https://b.example", undefined, 1, undefined],
    ["upstream is down", "https://a.example", "check it", 2, undefined],
  ]);

  log.info("upstream is up again", UPSTREAM);
  log.info("upstream answers again", UPSTREAM);
  assert.deepEqual(shown()[1], ["upstream is down", "https://a.example", "check it", 2, 3]);

  log.warn("upstream is down", UPSTREAM);
  assert.deepEqual(shown()[0], ["upstream is down", "https://a.example", undefined, 1, undefined]);
});

Deno.test("problems: every message of a lasting kind is one that larder logs", () => {
  const logged = textsBelow("src").filter(([path]) => !path.endsWith("problem_kinds.ts"))
    .map(([, text]) => text).join("\n");
  for (const { begins, ends } of PROBLEM_KINDS) {
    for (const message of [...begins, ...ends]) assert.ok(logged.includes(`"${message}"`), message);
  }
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
  assert.deepEqual(problems.list()[0]?.facts, { reason: "x".repeat(200), limit_bytes: 12 });
});

Deno.test("problems: there are never more than fifty", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  for (let count = 0; count < 1_000; count++) log.warn(`odd ${count}`);
  const messages = problems.list().map(({ message }) => message);
  assert.deepEqual([messages.length, messages[0], messages.at(-1)], [50, "odd 999", "odd 950"]);
});

function textsBelow(folder: string): readonly (readonly [path: string, text: string])[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return textsBelow(path);
    return path.endsWith(".ts") ? [[path, Deno.readTextFileSync(path)] as const] : [];
  });
}
