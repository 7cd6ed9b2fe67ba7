import assert from "node:assert/strict";
import type { Facts } from "../../../src/base/failure.ts";
import { LOG_LEVELS, type Logger } from "../../../src/telemetry/logger.ts";
import { OutageLog } from "../../../src/telemetry/outage_log.ts";
import { EVENTS } from "../../../src/telemetry/events.ts";
import { isPresent, RecentProblems } from "../../../src/telemetry/recent_problems.ts";

const UPSTREAM = { upstream: "https://a.example" };

function silentLogger(lines: string[] = []): Logger {
  const write = (msg: string, _facts?: Facts) => void lines.push(msg);
  return { debug: write, info: write, event: write, levels: new Set(LOG_LEVELS) };
}

Deno.test("problems: warnings and errors are remembered, newest first, and still logged", () => {
  let nowMs = 1_000;
  const lines: string[] = [];
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger(lines));
  log.info("fine");
  log.event("token-short", UPSTREAM);
  nowMs = 2_000;
  log.event("upload-failed");
  nowMs = 3_000;
  log.event("token-short", { ...UPSTREAM, request_id: "7" });

  assert.deepEqual(lines, ["fine", "token-short", "upload-failed", "token-short"]);
  const short = { part: "token-short", event: "token-short", level: "warn" };
  const failed = { part: "upload-failed", event: "upload-failed", level: "error" };
  const { hint } = EVENTS["token-short"];
  const odd = { ...short, message: "token is short", facts: { hint, ...UPSTREAM }, count: 2 };
  const bad = { ...failed, message: "upload failed", facts: {}, count: 1 };
  assert.deepEqual(problems.list(), [
    { ...odd, firstAtMs: 1_000, begunAtMs: 1_000, lastAtMs: 3_000, overAtMs: undefined },
    { ...bad, firstAtMs: 2_000, begunAtMs: 2_000, lastAtMs: 2_000, overAtMs: undefined },
  ]);
});

Deno.test("problems: an event is present by the clock that all members share", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  const sharedMs = 7_200_000;
  problems.takeClock(() => sharedMs);
  log.event("token-short", UPSTREAM);
  const [odd] = problems.list();
  assert.ok(odd);
  assert.equal(isPresent(odd, sharedMs), true);
});

Deno.test("problems: a kind has one row for each upstream, until it is over", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs++);
  const log = problems.watch(silentLogger());
  log.event("upstream-silent", { ...UPSTREAM, hint: "check it" });
  log.event("upstream-down", { ...UPSTREAM, hint: "check it" });
  log.event("upstream-failed", { upstream: "https://b.example", hint: "wait" });
  const shown = () =>
    problems.list().map(({ message, facts, count, overAtMs }) => [
      ...[message, facts["upstream"], facts["hint"]],
      ...[count, overAtMs],
    ]);
  assert.deepEqual(shown(), [
    ["upstream failed", "https://b.example", "wait", 1, undefined],
    ["upstream is down", "https://a.example", "check it", 2, undefined],
  ]);

  log.event("upstream-up", UPSTREAM);
  log.event("upstream-answers", UPSTREAM);
  assert.deepEqual(shown()[1]?.slice(3), [2, 7], "over with the last of its outages");

  log.event("upstream-down", UPSTREAM);
  const { hint } = EVENTS["upstream-down"];
  assert.deepEqual(shown()[0], ["upstream is down", "https://a.example", hint, 3, undefined]);
});

Deno.test("problems: each break of a transfer counts, and its end is no other problem", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  const facts = { ...UPSTREAM, nar: "1.nar.xz", reason: "status", status: 503 };
  const shown = () => problems.list().map(({ message, count }) => [message, count]);
  log.event("download-broke-off", { ...facts, nar: "0.nar.xz" }, "debug");
  assert.deepEqual(shown(), [], "one that no client waits for");
  log.event("download-broke-off", facts);
  for (let time = 0; time < 3; time++) log.event("download-broke-off", facts, "debug");
  assert.deepEqual(shown(), [["download broke off", 4]]);
  log.event("nar-given-up", facts);
  assert.deepEqual(shown(), [["nar download given up", 4]]);
  log.event("download-broke-off", facts);
  log.event("nar-not-fetched", facts);
  assert.deepEqual(shown(), [["nar not fetched", 5]]);
  assert.deepEqual(problems.list()[0]?.facts, facts);
});

Deno.test("problems: an outage that comes again keeps its count and its first time", () => {
  let nowMs = 1_000;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  const times = () =>
    problems.list().map(({ count, firstAtMs, begunAtMs, lastAtMs, overAtMs }) => [
      ...[count, firstAtMs, begunAtMs, lastAtMs, overAtMs],
    ]);
  log.event("database-away");
  log.event("database-back");
  assert.deepEqual(times(), [[1, 1_000, 1_000, 1_000, 1_000]]);
  nowMs = 2_000;
  log.event("database-away");
  nowMs = 3_000;
  log.event("database-away", {}, "debug");
  assert.deepEqual(times(), [[3, 1_000, 2_000, 3_000, undefined]]);
});

Deno.test("problems: the gravest message of an outage stays, with its own hint", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.event("upstream-no-cache", { ...UPSTREAM, hint: "check the path" });
  log.event("upstream-failed", { ...UPSTREAM, hint: "wait" });
  assert.equal(problems.list()[0]?.message, "upstream failed", "the newest of the equally grave");
  log.event("upstream-down", { ...UPSTREAM, hint: "check the network" });
  log.event("upstream-failed", { ...UPSTREAM, reason: "unreachable", hint: "wait" }, "debug");
  log.event("nar-store-away", { hint: "check the network" });
  log.event("nar-not-removed", { nar: "a.nar", hint: "give the right" });
  assert.deepEqual(problems.list().map(({ message, facts, count }) => [message, facts, count]), [
    ["nar store unavailable: nars pass through", { hint: "check the network" }, 2],
    ["upstream is down", { ...UPSTREAM, hint: "check the network" }, 4],
  ]);
});

Deno.test("problems: an outage is present until its end, an event for 15 minutes", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  log.event("database-away");
  log.event("token-short");
  const present = () =>
    problems.list().filter((one) => isPresent(one, nowMs)).map(({ message }) => message);
  assert.deepEqual(present(), ["token is short", "database does not answer"]);
  nowMs = 15 * 60_000;
  assert.deepEqual(present(), ["database does not answer"]);
  nowMs *= 100;
  assert.deepEqual(present(), ["database does not answer"]);
  log.event("database-back");
  assert.deepEqual(present(), []);
});

Deno.test("problems: the outages of one part are one, which ends with the last of them", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  const shown = () =>
    problems.list().map(({ part, message, overAtMs }) => [part, message, overAtMs]);
  log.event("touches-not-written", { error: "database is locked" });
  log.event("heartbeat-not-written", { error: "database is locked" });
  assert.deepEqual(shown(), [["database", "heartbeat not written", undefined]]);
  log.event("heartbeats-written");
  assert.deepEqual(shown(), [["database", "heartbeat not written", undefined]], "one title");
  nowMs = 10_000;
  assert.deepEqual(shown(), [["database", "touches not written", undefined]], "what lasts");
  log.event("touches-written");
  assert.deepEqual(shown(), [["database", "touches not written", 10_000]]);
});

Deno.test("problems: Redis is one problem of one title until locks are acquired again", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  const shown = () => problems.list().map(({ message, overAtMs }) => [message, overAtMs]);
  const open = "circuit breaker open: Redis is unavailable";
  log.event("redis-away");
  log.event("lock-not-acquired", { reason: "circuit_breaker" });
  assert.deepEqual(shown(), [[open, undefined]]);
  nowMs = 5_000;
  log.event("redis-back");
  nowMs = 6_000;
  log.event("lock-not-acquired", { reason: "circuit_breaker" }, "debug");
  assert.deepEqual(shown(), [[open, undefined]]);
  nowMs = 8_000;
  log.event("locks-acquired");
  assert.deepEqual(shown(), [[open, 8_000]]);
});

Deno.test("problems: a full disk is one problem, whatever it keeps from working", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.event("touches-not-written", { error: "database or disk is full" });
  log.event("upload-failed", { error: "No space left on device" });
  log.event("nars-not-kept", { detail: "No space left on device" });
  const present = () => problems.list().filter((one) => isPresent(one, 0)).map(({ part }) => part);
  assert.deepEqual(present(), ["disk"]);
  log.event("nars-kept");
  assert.deepEqual(present(), ["disk"], "touches are not written yet");
  log.event("touches-written");
  assert.deepEqual(present(), []);
});

Deno.test("problems: repeats of an outage count, though they are logged at debug", () => {
  let nowMs = 1_000;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  log.event("nar-store-away");
  nowMs = 2_000;
  log.event("nar-store-away", {}, "debug");
  log.debug("fine");
  assert.deepEqual(
    problems.list().map(({ level, count, lastAtMs }) => [level, count, lastAtMs]),
    [["error", 2, 2_000]],
  );
});

Deno.test("problems: a slow upstream that lasts is one time, under the title of what is slow", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  const sends = new OutageLog(log, "upstream-sends-quickly");
  const answers = new OutageLog(log, "upstream-answers-quickly");
  const shown = () => problems.list().map(({ message, count }) => [message, count]).toSorted();
  const slowly = "upstream sends nars slowly: clients wait for them";
  const late = "upstream answers slowly: clients wait for it";
  for (let second = 0; second < 127; second++) {
    nowMs += 1_000;
    sends.failed("upstream-sends-slowly", { ...UPSTREAM, bytes_per_second: second });
    if (second === 5) answers.failed("upstream-answers-slowly", UPSTREAM);
  }
  assert.deepEqual(shown(), [[late, 1], [slowly, 1]]);
  assert.deepEqual(problems.list()[0]?.facts["bytes_per_second"], 126, "the newest rate");
  sends.worked(UPSTREAM);
  answers.worked(UPSTREAM);
  assert.deepEqual(shown(), [[late, 1], [slowly, 1]]);
  sends.failed("upstream-sends-slowly", UPSTREAM);
  assert.deepEqual(shown(), [[late, 1], [slowly, 2]], "it comes again");
});

Deno.test("problems: the end of an outage names no upstream, though its begin did", () => {
  const problems = new RecentProblems(() => 5);
  const log = problems.watch(silentLogger());
  log.event("nars-not-kept", UPSTREAM);
  log.event("nars-kept", { times: 1 });
  assert.equal(problems.list()[0]?.overAtMs, 5);
});

Deno.test("problems: facts that may name our files are left out, long ones are cut", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.event("upload-failed", {
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
  for (let count = 0; count < 1_000; count++) log.event("token-short", { upstream: `${count}` });
  const shown = problems.list().map(({ facts }) => facts["upstream"]);
  assert.deepEqual([shown.length, shown[0], shown.at(-1)], [50, "999", "950"]);
});

Deno.test("problems: a problem that is over leaves before one that lasts", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.event("database-away");
  log.event("touches-not-written");
  log.event("touches-written");
  for (let count = 0; count < 49; count++) log.event("token-short", { upstream: `${count}` });
  const messages = problems.list().map(({ message }) => message);
  assert.deepEqual([messages.length, messages.at(-1)], [50, "database does not answer"]);
});
