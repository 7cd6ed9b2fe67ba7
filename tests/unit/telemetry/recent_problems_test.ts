import assert from "node:assert/strict";
import type { Facts } from "../../../src/base/failure.ts";
import type { Logger } from "../../../src/telemetry/logger.ts";
import { OutageLog } from "../../../src/telemetry/outage_log.ts";
import { type Outage, OUTAGES } from "../../../src/telemetry/outages.ts";
import { isPresent, RecentProblems } from "../../../src/telemetry/recent_problems.ts";

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
  const odd = { part: "odd", level: "warn", message: "odd", facts: UPSTREAM, count: 2 };
  const bad = { part: "bad", level: "error", message: "bad", facts: {}, count: 1 };
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
  log.warn("odd", UPSTREAM);
  const [odd] = problems.list();
  assert.ok(odd);
  assert.equal(isPresent(odd, sharedMs), true);
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
  assert.deepEqual(shown()[1]?.slice(3), [2, 7], "over with the last of its outages");

  log.warn("upstream is down", UPSTREAM);
  assert.deepEqual(shown()[0], ["upstream is down", "https://a.example", undefined, 3, undefined]);
});

Deno.test("problems: each break of a transfer counts, and its end is no other problem", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  const facts = { ...UPSTREAM, nar: "1.nar.xz", reason: "status", status: 503 };
  const shown = () => problems.list().map(({ message, count }) => [message, count]);
  log.debug("download broke off", { ...facts, nar: "0.nar.xz" });
  assert.deepEqual(shown(), [], "one that no client waits for");
  log.warn("download broke off", facts);
  for (let time = 0; time < 3; time++) log.debug("download broke off", facts);
  assert.deepEqual(shown(), [["download broke off", 4]]);
  log.warn("nar download given up", facts);
  assert.deepEqual(shown(), [["nar download given up", 4]]);
  log.warn("download broke off", facts);
  log.warn("nar not fetched", facts);
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
  log.warn("database does not answer");
  log.info("database answers again");
  assert.deepEqual(times(), [[1, 1_000, 1_000, 1_000, 1_000]]);
  nowMs = 2_000;
  log.warn("database does not answer");
  nowMs = 3_000;
  log.debug("database does not answer");
  assert.deepEqual(times(), [[3, 1_000, 2_000, 3_000, undefined]]);
});

Deno.test("problems: the gravest message of an outage stays, with its own hint", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.warn("upstream is no binary cache", { ...UPSTREAM, hint: "check the path" });
  log.warn("upstream failed", { ...UPSTREAM, hint: "wait" });
  assert.equal(problems.list()[0]?.message, "upstream failed", "the newest of the equally grave");
  log.warn("upstream is down", { ...UPSTREAM, hint: "check the network" });
  log.debug("upstream failed", { ...UPSTREAM, reason: "unreachable", hint: "wait" });
  log.error("nar store unavailable: nars pass through", { hint: "check the network" });
  log.error("nar not removed", { nar: "a.nar", hint: "give the right" });
  assert.deepEqual(problems.list().map(({ message, facts, count }) => [message, facts, count]), [
    ["nar store unavailable: nars pass through", { hint: "check the network" }, 2],
    ["upstream is down", { ...UPSTREAM, hint: "check the network" }, 4],
  ]);
});

Deno.test("problems: each outage has a log, and only that logs its messages", () => {
  const source = textsBelow("src").filter(([path]) => !path.endsWith("/outages.ts"))
    .map(([, text]) => text).join("\n");
  for (const [name, { begins, over }] of Object.entries<Outage>(OUTAGES)) {
    assert.match(source, new RegExp(`OutageLog\\([\\w.]+, OUTAGES\\.${name}\\)`));
    for (const message of [...Object.keys(begins), over]) {
      const told = source.matchAll(new RegExp(`(\\w+)\\(\\s*"${message}"`, "g"));
      const methods = new Set([...told].map(([, method]) => method));
      assert.ok(methods.size === 0 || methods.size === 1 && methods.has("failed"), message);
    }
  }
});

Deno.test("problems: an outage is present until its end, an event for 15 minutes", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  log.warn("database does not answer");
  log.warn("odd");
  const present = () =>
    problems.list().filter((one) => isPresent(one, nowMs)).map(({ message }) => message);
  assert.deepEqual(present(), ["odd", "database does not answer"]);
  nowMs = 15 * 60_000;
  assert.deepEqual(present(), ["database does not answer"]);
  nowMs *= 100;
  assert.deepEqual(present(), ["database does not answer"]);
  log.info("database answers again");
  assert.deepEqual(present(), []);
});

Deno.test("problems: the outages of one part are one, which ends with the last of them", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  const shown = () =>
    problems.list().map(({ part, message, overAtMs }) => [part, message, overAtMs]);
  log.warn("touches not written", { error: "database is locked" });
  log.warn("heartbeat not written", { error: "database is locked" });
  assert.deepEqual(shown(), [["database", "heartbeat not written", undefined]]);
  log.info("heartbeats are written again");
  assert.deepEqual(shown(), [["database", "heartbeat not written", undefined]], "one title");
  nowMs = 10_000;
  assert.deepEqual(shown(), [["database", "touches not written", undefined]], "what lasts");
  log.info("touches are written again");
  assert.deepEqual(shown(), [["database", "touches not written", 10_000]]);
});

Deno.test("problems: Redis is one problem of one title until locks are acquired again", () => {
  let nowMs = 0;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  const shown = () => problems.list().map(({ message, overAtMs }) => [message, overAtMs]);
  const open = "circuit breaker open: Redis is unavailable";
  log.warn(open);
  log.warn("failed to acquire lock", { reason: "circuit_breaker" });
  assert.deepEqual(shown(), [[open, undefined]]);
  nowMs = 5_000;
  log.info("circuit breaker closed: Redis is available again");
  nowMs = 6_000;
  log.debug("failed to acquire lock", { reason: "circuit_breaker" });
  assert.deepEqual(shown(), [[open, undefined]]);
  nowMs = 8_000;
  log.info("locks are acquired again");
  assert.deepEqual(shown(), [[open, 8_000]]);
});

Deno.test("problems: a full disk is one problem, whatever it keeps from working", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.warn("touches not written", { error: "database or disk is full" });
  log.error("upload failed", { error: "No space left on device" });
  log.error("nars cannot be kept: they pass through", { detail: "No space left on device" });
  const present = () => problems.list().filter((one) => isPresent(one, 0)).map(({ part }) => part);
  assert.deepEqual(present(), ["disk"]);
  log.info("nars are kept again");
  assert.deepEqual(present(), ["disk"], "touches are not written yet");
  log.info("touches are written again");
  assert.deepEqual(present(), []);
});

Deno.test("problems: repeats of an outage count, though they are logged at debug", () => {
  let nowMs = 1_000;
  const problems = new RecentProblems(() => nowMs);
  const log = problems.watch(silentLogger());
  log.error("nar store unavailable: nars pass through");
  nowMs = 2_000;
  log.debug("nar store unavailable: nars pass through");
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
  const sends = new OutageLog(log, OUTAGES.upstreamSendsSlowly);
  const answers = new OutageLog(log, OUTAGES.upstreamAnswersSlowly);
  const shown = () => problems.list().map(({ message, count }) => [message, count]).toSorted();
  const slowly = "upstream sends nars slowly: clients wait for them";
  const late = "upstream answers slowly: clients wait for it";
  for (let second = 0; second < 127; second++) {
    nowMs += 1_000;
    sends.failed(slowly, { ...UPSTREAM, bytes_per_second: second });
    if (second === 5) answers.failed(late, UPSTREAM);
  }
  assert.deepEqual(shown(), [[late, 1], [slowly, 1]]);
  assert.deepEqual(problems.list()[0]?.facts["bytes_per_second"], 126, "the newest rate");
  sends.worked(UPSTREAM);
  answers.worked(UPSTREAM);
  assert.deepEqual(shown(), [[late, 1], [slowly, 1]]);
  sends.failed(slowly, UPSTREAM);
  assert.deepEqual(shown(), [[late, 1], [slowly, 2]], "it comes again");
});

Deno.test("problems: the end of an outage names no upstream, though its begin did", () => {
  const problems = new RecentProblems(() => 5);
  const log = problems.watch(silentLogger());
  log.error("nars cannot be kept: they pass through", UPSTREAM);
  log.info("nars are kept again", { times: 1 });
  assert.equal(problems.list()[0]?.overAtMs, 5);
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

Deno.test("problems: a problem that is over leaves before one that lasts", () => {
  const problems = new RecentProblems(() => 0);
  const log = problems.watch(silentLogger());
  log.warn("database does not answer");
  log.warn("touches not written");
  log.info("touches are written again");
  for (let count = 0; count < 49; count++) log.warn(`odd ${count}`);
  const messages = problems.list().map(({ message }) => message);
  assert.deepEqual([messages.length, messages.at(-1)], [50, "database does not answer"]);
});

function textsBelow(folder: string): readonly (readonly [path: string, text: string])[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return textsBelow(path);
    return path.endsWith(".ts") ? [[path, Deno.readTextFileSync(path)] as const] : [];
  });
}
