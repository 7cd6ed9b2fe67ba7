import assert from "node:assert/strict";
import { type EventKind, EVENTS, failedPart } from "../../../../src/telemetry/events.ts";
import type { Facts } from "../../../../src/base/failure.ts";
import type { SizeStats, UpstreamStats } from "../../../../src/http/stats/stats.ts";
import { type Judged, verdictOf } from "../../../../src/http/stats/verdict.ts";
import { diskReserveBytes } from "../../../../src/space/size_limit.ts";
import type { Problem } from "../../../../src/telemetry/recent_problems.ts";

const MINUTE_MS = 60_000;
const NOON_MS = Date.UTC(2026, 0, 2, 12);

const ROOMY: SizeStats = {
  ...{
    used_bytes: 0,
    reserved_bytes: 0,
    pinned_bytes: 0,
    database_bytes: 0,
    recompressed_bytes: 0,
    evicted_bytes: 0,
    evicted_entries: 0,
  },
  ...{
    limit_bytes: null,
    limit_source: "unlimited",
    disk_reserve_bytes: null,
    disk_free_bytes: null,
  },
};

function upstream(
  result: string,
  isUp = true,
  host = "a.example",
  status: number | null = null,
): UpstreamStats {
  const at = "2026-01-02T12:00:00.000Z";
  return {
    ...{
      url: `https://${host}`,
      is_up: isUp,
      sends_nars: true,
      waits: { count: 0, late: 0, total_ms: 0, longest_ms: 0 },
      slow_answers: { count: 0, longest_ms: 0 },
      last_wait: null,
      nar_bytes_per_second: null,
      priority: null,
      last_answer: { result, at },
    },
    last_nar_answer: null,
    last_error: { request: "narinfo", reason: result, status, at, hint: "look at it" },
    ...{ answers: { found: 0, absent: 0, failed: 1 }, latencies_ms: [] },
  };
}

function problem(event: EventKind, facts: Facts = {}, times: Partial<Problem> = {}): Problem {
  const at = { firstAtMs: 0, begunAtMs: NOON_MS, lastAtMs: NOON_MS, overAtMs: undefined };
  return {
    part: failedPart(event),
    event,
    level: "warn",
    message: EVENTS[event].words,
    facts,
    count: 1,
    ...at,
    ...times,
  };
}

/** The verdict six seconds after noon. */
function verdict(judged: Partial<Judged>) {
  const atMs = NOON_MS + MINUTE_MS / 10;
  return verdictOf({ upstreams: [upstream("found")], size: ROOMY, problems: [], atMs, ...judged });
}

Deno.test("verdict: a limit above the disk cannot hold, and it says what to set", () => {
  const size = {
    ...ROOMY,
    ...{ limit_bytes: 5 * 2 ** 40, limit_source: "set" as const },
    ...{ used_bytes: 20 * 2 ** 30, reserved_bytes: 2 ** 30, disk_free_bytes: 199 * 2 ** 30 },
  };
  assert.deepEqual(verdict({ size }).faults, [{
    level: "warn",
    text: "The size limit of 5.0 TiB cannot hold: the disk has room for 220.0 GiB",
    hint: "set --cache-max-size to auto, or to 198G at most",
  }]);
  for (
    const fits of [
      { size: { ...size, limit_bytes: 220 * 2 ** 30 } },
      { size: { ...size, disk_free_bytes: null } },
      { size: { ...size, limit_source: "disk" as const } },
      { size, isOfBucket: true },
    ]
  ) assert.equal(verdict(fits).is_well, true);
});

Deno.test("verdict: a small disk is well, if enough is left once larder has filled its limit", () => {
  const MIB = 2 ** 20;
  const full = {
    ...{ ...ROOMY, limit_source: "set" as const, limit_bytes: 44 * MIB },
    ...{ used_bytes: 42.5 * MIB, disk_free_bytes: 490.9 * MIB },
  };
  const wellWith = (size: Partial<SizeStats>, isOfBucket = false) =>
    verdict({ size: { ...full, ...size }, isOfBucket }).is_well;
  assert.equal(wellWith({}), true);
  assert.equal(wellWith({ disk_free_bytes: 257.5 * MIB }), true);
  assert.equal(wellWith({ disk_free_bytes: 257 * MIB }), false, "near its end");
  assert.equal(wellWith({ limit_bytes: 300 * MIB }), false, "larder still takes the rest");
  assert.equal(wellWith({ limit_bytes: 40 * MIB }), true, "larder takes no more");
  assert.equal(wellWith({ limit_bytes: null, limit_source: "unlimited" }), false);
  assert.equal(wellWith({}, true), false, "the limit is that of a bucket");
});

Deno.test("verdict: the room that larder leaves free is no fault, on a disk of any size", () => {
  for (const mib of [312, 9 * 1024, 100 * 1024, 1024 * 1024]) {
    const totalBytes = mib * 2 ** 20;
    const reserveBytes = diskReserveBytes(totalBytes);
    const used_bytes = totalBytes - reserveBytes;
    const full = { ...ROOMY, used_bytes, limit_bytes: used_bytes, limit_source: "disk" as const };
    const left = { ...full, disk_reserve_bytes: reserveBytes, disk_free_bytes: reserveBytes };
    assert.equal(verdict({ size: left }).is_well, true, `${mib} MiB`);
    const underWay = { ...left, disk_free_bytes: reserveBytes * 0.6 };
    assert.equal(verdict({ size: underWay }).is_well, true, `a download on ${mib} MiB`);
    const filled = { ...left, disk_free_bytes: Math.min(reserveBytes / 3, 2 ** 29) };
    const [fault] = verdict({ size: filled }).faults;
    assert.match(fault?.text ?? "", /^The disk has only /);
    assert.match(fault?.hint ?? "", /something else fills it/);
  }
});

Deno.test("verdict: an outage is a fault until its end, with the times that are known", () => {
  const hint = "check the server";
  const textsAt = (atMs: number, times: Partial<Problem> = {}) =>
    verdict({ problems: [problem("database-away", { hint }, times)], atMs }).faults;
  assert.deepEqual(textsAt(NOON_MS + 300 * MINUTE_MS), [
    { level: "warn", text: "Database does not answer, since 12:00 UTC", hint },
  ]);
  const lastAtMs = NOON_MS + 10 * MINUTE_MS;
  assert.deepEqual(
    textsAt(NOON_MS + 24 * 60 * MINUTE_MS, { lastAtMs }).map(({ text }) => text),
    ["Database does not answer, since 2 Jan 12:00 UTC, last seen at 2 Jan 12:10 UTC"],
  );
  assert.deepEqual(textsAt(lastAtMs, { overAtMs: lastAtMs }), []);
});

Deno.test("verdict: an event is a fault for 15 minutes, an upstream's warning is none", () => {
  const faultsAt = (minutes: number, one: Problem) =>
    verdict({ problems: [one], atMs: NOON_MS + minutes * MINUTE_MS }).faults;
  const event = problem("stored-nar-damaged", { name: "a-1" }, { level: "error" });
  assert.deepEqual(faultsAt(14, event).map(({ level, text }) => [level, text]), [
    ["error", "Stored NAR is damaged (a-1), at 12:00 UTC"],
  ]);
  assert.deepEqual(faultsAt(15, event), []);
  const facts = { upstream: "https://a.example" };
  assert.deepEqual(faultsAt(1, problem("upstream-lost-nar", facts)), []);
  assert.deepEqual(faultsAt(1, problem("upstream-down", facts)), []);
  const refused = problem("nar-verification-failed", facts, { level: "error" });
  assert.equal(faultsAt(0.1, refused).length, 1);
  assert.equal(faultsAt(0.15, refused).length, 0, "an upstream that still fails says so");
  const slow = problem("upstream-queue-late", facts);
  assert.equal(faultsAt(99, slow).length, 1);
});

Deno.test("verdict: an upstream without use is a fault; if none is of use, it is an error", () => {
  const of = (...upstreams: readonly UpstreamStats[]) => {
    const { text, faults } = verdict({ upstreams });
    return [text, ...faults.map((fault) => `${fault.level}: ${fault.text}`)];
  };
  assert.deepEqual(of(upstream("absent")), ["All is well"]);
  assert.deepEqual(of(upstream("status"), upstream("found", true, "b.example")), [
    ...["Needs a look", "warn: Upstream a.example answers with errors"],
  ]);
  assert.deepEqual(of(upstream("untrusted")), [
    ...["Only stored paths are served", "error: No trusted key signs the narinfos of a.example"],
  ]);
  assert.deepEqual(of(upstream("found"), upstream("timeout", false)), [
    ...["Needs a look", "warn: 1 upstream of 2 is down: a.example"],
  ]);
  assert.deepEqual(of(upstream("timeout", false)), [
    ...["Only stored paths are served", "error: The upstream is down"],
  ]);
});

Deno.test("verdict: an upstream's error names its status, and says of which requests", () => {
  const textsOf = (...upstreams: readonly UpstreamStats[]) =>
    verdict({ upstreams: [...upstreams, upstream("found", true, "b.example")] })
      .faults.map(({ text, hint }) => `${text}: ${hint}`);
  const refusing = upstream("status", true, "a.example", 503);
  assert.deepEqual(textsOf(refusing), [
    "Upstream a.example answers with HTTP status 503: look at it",
  ]);
  const broken = upstream("status", true, "c.example", 500);
  assert.deepEqual(textsOf(refusing, broken), [
    "Upstreams a.example, c.example answer with HTTP status 500 or 503: look at it",
  ]);
  const [last_answer, last_nar_answer] = [upstream("found").last_answer, refusing.last_answer];
  assert.deepEqual(textsOf({ ...refusing, last_answer, last_nar_answer }), [
    "Upstream a.example answers NAR requests with HTTP status 503: look at it",
  ]);
});

Deno.test("verdict: errors to NAR requests alone say nothing of narinfos", () => {
  const ofNars = (host: string): UpstreamStats => {
    const one = upstream("status", true, host, 503);
    const last_error = one.last_error && { ...one.last_error, request: "nar" as const };
    return { ...one, last_answer: null, last_nar_answer: one.last_answer, last_error };
  };
  assert.deepEqual(
    verdict({ upstreams: [ofNars("a.example"), ofNars("b.example")] }).faults
      .map(({ text }) => text),
    ["Upstreams a.example, b.example answer NAR requests with HTTP status 503"],
  );
  const described = { ...ofNars("a.example"), last_nar_answer: null };
  assert.deepEqual(verdict({ upstreams: [described] }).faults, []);
});

Deno.test("verdict: when all upstreams are down, it has the remedy of their rows", () => {
  const upstreams = [upstream("timeout", false), upstream("timeout", false, "b.example")];
  const { faults } = verdict({ upstreams });
  assert.deepEqual(faults, [
    { level: "error", text: "All upstreams are down", hint: "look at it" },
  ]);
});

Deno.test("verdict: if no upstream is of use, one error names them and says what to do", () => {
  const of = (...upstreams: readonly UpstreamStats[]) => verdict({ upstreams });
  const fails = of(upstream("status"), upstream("status", true, "b.example"));
  const text = "Upstreams a.example, b.example answer with errors";
  assert.deepEqual(fails.faults, [{ level: "error", text, hint: "look at it" }]);
  assert.equal(fails.text, "Only stored paths are served");
  const mixed = of(
    upstream("timeout", false),
    upstream("garbage", true, "b.example"),
    upstream("untrusted", true, "c.example"),
  );
  assert.deepEqual(mixed.faults.map(({ level, text }) => [level, text]), [[
    "error",
    "No upstream can be used: a.example is down, b.example sends no narinfos, " +
    "c.example is not trusted",
  ]]);
});

Deno.test("verdict: upstreams with one fault share it, while another one answers", () => {
  const upstreams = [
    upstream("status"),
    ...[upstream("status", true, "b.example"), upstream("found", true, "c.example")],
  ];
  const text = "Upstreams a.example, b.example answer with errors";
  assert.deepEqual(verdict({ upstreams }).faults, [{ level: "warn", text, hint: "look at it" }]);
});

Deno.test("verdict: an upstream that answers a probe is no fault, whatever came before", () => {
  assert.equal(verdict({ upstreams: [upstream("timeout")] }).is_well, true);
  assert.equal(verdict({ upstreams: [upstream("unreachable")] }).is_well, true);
});

Deno.test("verdict: an error that an upstream sent 8 s ago is no fault, its key is", () => {
  const atMs = NOON_MS + 8_000;
  assert.equal(verdict({ upstreams: [upstream("status")], atMs: atMs - 1 }).is_well, false);
  assert.equal(verdict({ upstreams: [upstream("status")], atMs }).is_well, true);
  assert.equal(verdict({ upstreams: [upstream("untrusted")], atMs }).is_well, false);
});

Deno.test("verdict: errors come before warnings", () => {
  const size = { ...ROOMY, disk_free_bytes: 1 };
  const problems = [problem("token-short"), problem("upload-failed", {}, { level: "error" })];
  const { is_well, faults } = verdict({ size, problems });
  assert.equal(is_well, false);
  assert.deepEqual(faults.map(({ level }) => level), ["error", "warn", "warn"]);
});
