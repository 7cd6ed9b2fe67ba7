import assert from "node:assert/strict";
import { Failure } from "../../src/base/failure.ts";
import { MemberReports } from "../../src/http/stats/member_reports.ts";
import { formatStatus } from "../../src/http/stats/member_status.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { runLarder } from "../support/run_larder.ts";
import { readStats } from "../support/stats_of.ts";
import { scrape } from "../support/scrape.ts";
import { MemoryMemberBoard } from "../support/memory_member_board.ts";
import { PlayedTime } from "../support/played_time.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { REPORTED, reportedMembers } from "../support/reported_members.ts";

const object = makeStoreObject({ name: "big-1.0", size: 4_000_000 });

async function pageOf(cache: TestCache): Promise<string> {
  const html = await (await cache.get("/", { accept: "text/html" })).text();
  return /<div id="members"[^>]*>(.*?)<\/div>/s.exec(html)?.[1] ?? "no part of members";
}

async function membersOf(cache: TestCache) {
  return (await readStats(await cache.get("/stats"))).members;
}

Deno.test("members: others' reports are in /stats and on the page, behind this one", async () => {
  const members = reportedMembers({ "larder-2.7.x": {} });
  await using cache = await TestCache.open({ upstreams: ["http://127.0.0.1:1"], members });
  await cache.reportToMembers();
  const [self, other, ...more] = await membersOf(cache);
  assert.deepEqual(more, []);
  assert.deepEqual([self?.id, self?.host, self?.is_self, self?.state], [
    ...["test", "larder-1", true, "running"],
  ]);
  assert.deepEqual(self?.upstreams, { up: 1, down: 0 });
  const { id, is_self, state, reported_at: _, ...told } = other ?? {};
  const { is_draining: _2, ...expected } = REPORTED;
  assert.deepEqual([id, is_self, state], ["larder-2.7.x", false, "running"]);
  assert.deepEqual(told, expected);
  const page = (await pageOf(cache)).replace(/<[^>]+>/g, "|").replace(/\|+/g, "|");
  assert.match(page, /\|Members\|/);
  assert.match(page, /\|larder-1\| \(this one\)\|/);
  assert.match(
    page,
    /\|running\| \|larder-2\|larder 0\.1\.0, http:\/\/larder-2\.example:8501, up f/,
  );
  assert.match(
    page,
    /\|12\.5 requests\/s, 75 % hits, 2 of 3 upstreams up, 3 problems, 7 downloads\|/,
  );
  assert.match(page, /\|big-1\.0: 1000 B of 3\.9 KiB\|and 6 more\|/);
});

Deno.test("members: a larder that is alone on its machine shows none", async () => {
  for (const [isShared, count] of [[false, 0], [true, 1]] as const) {
    const members = reportedMembers({}, { isShared });
    await using cache = await TestCache.open({ upstreams: [], members });
    await cache.reportToMembers();
    assert.equal((await membersOf(cache)).length, count);
    assert.equal((await pageOf(cache)).includes("Members"), isShared);
  }
  await using cache = await TestCache.open({ upstreams: [] });
  assert.deepEqual([await membersOf(cache), await pageOf(cache)], [[], ""]);
});

Deno.test("members: one that reports no more is gone, one that ends is draining", async () => {
  const members = reportedMembers({
    late: { silentMs: 9_000 },
    dead: { silentMs: 15_000, status: { host: "larder-3" } },
    left: { silentMs: 120_000, status: { is_draining: true } },
    ending: { status: { is_draining: true } },
  });
  await using cache = await TestCache.open({ upstreams: [], members });
  await cache.reportToMembers();
  const states = (await membersOf(cache)).map(({ id, state }) => `${id} ${state}`);
  assert.deepEqual(states, [
    "test running",
    "ending draining",
    "late running",
    "dead gone",
    "left left",
  ]);
  const page = (await pageOf(cache)).replace(/<[^>]+>/g, "|");
  assert.match(page, /gone\|.*last report \|15 s ago\|/);
  const { verdict } = await readStats(await cache.get("/stats"));
  assert.equal(verdict.is_well, false);
  assert.deepEqual(verdict.faults.map(({ text }) => text.replace(/\d+ s$/, "N s")), [
    "Member larder-3 at http://larder-2.example:8501 is gone: no report for N s",
  ]);
  await using server = cache.listen();
  const { out } = await runLarder(["status", "--server", server.url]);
  assert.match(out, /^Members {4}✓ larder-1 \(this one\) +running, up /m);
  assert.match(
    out,
    /^ {11}✗ larder-3 +gone, last report \d+ s ago, at http:\/\/larder-2\.example:8501$/m,
  );
  assert.match(out, /^ {11}– larder-2 +left, last report /m);
  const narrow = await runLarder(["status", "--server", server.url], { columns: 80 });
  assert.deepEqual(narrow.out.split("\n").filter((line) => line.length > 80), []);
  assert.match(narrow.out, /✗ larder-3 {2}gone, .*,\s+at\s+http:\/\/larder-2\.example:8501$/m);
  cache.stopping();
  await cache.reportToMembers();
  assert.equal((await membersOf(cache))[0]?.state, "draining");
});

Deno.test("members: Prometheus counts them by state, and one that is alone", async () => {
  const states = async (cache: TestCache) => {
    const metrics = await scrape(cache);
    return ["running", "draining", "gone", "left"].map((state) =>
      metrics.value(`larder_members{state="${state}"}`)
    );
  };
  const members = reportedMembers({
    other: {},
    dead: { silentMs: 15_000, status: { host: "larder-3" } },
    left: { silentMs: 120_000, status: { is_draining: true } },
    ending: { status: { is_draining: true } },
  });
  await using cache = await TestCache.open({ upstreams: [], members });
  await cache.reportToMembers();
  assert.deepEqual(await states(cache), [2, 1, 1, 1]);

  await using alone = await TestCache.open({ upstreams: [], members: reportedMembers({}) });
  await alone.reportToMembers();
  assert.deepEqual(await states(alone), [1, 0, 0, 0]);
  alone.stopping();
  await alone.reportToMembers();
  assert.deepEqual(await states(alone), [0, 1, 0, 0]);
});

Deno.test("members: a killed one that runs again is no fault any more", async () => {
  const startedAt = (ageMs: number) => new Date(Date.now() - ageMs).toISOString();
  const members = reportedMembers({
    killed: { silentMs: 60_000, status: { started_at: startedAt(600_000) } },
    again: { status: { started_at: startedAt(20_000) } },
  });
  await using cache = await TestCache.open({ upstreams: [], members });
  await cache.reportToMembers();
  const { verdict } = await readStats(await cache.get("/stats"));
  assert.deepEqual(verdict.faults, []);
  assert.deepEqual((await membersOf(cache)).map(({ id }) => id), ["test", "again"]);
});

Deno.test("members: one at the URL of a killed one replaces it at once, whatever its host", async () => {
  const startedAt = (ageMs: number) => new Date(Date.now() - ageMs).toISOString();
  const members = reportedMembers({
    // Not even its silence is long enough.
    killed: { silentMs: 4_000, status: { host: "b2f0c1", started_at: startedAt(600_000) } },
    again: { status: { host: "77ae09", started_at: startedAt(1_000) } },
    elsewhere: { silentMs: 60_000, status: { host: "c3", url: "http://larder-3.example:8501" } },
  });
  await using cache = await TestCache.open({ upstreams: [], members });
  await cache.reportToMembers();
  assert.deepEqual((await membersOf(cache)).map(({ id }) => id), ["test", "again", "elsewhere"]);
});

Deno.test("members: their silence during an outage of the database is none", async () => {
  let nowMs = Date.now();
  const status = formatStatus(REPORTED);
  const board = new MemoryMemberBoard(() => nowMs, [
    ["living", { status, atMs: nowMs }],
    ["dead", { status: formatStatus({ ...REPORTED, host: "x", url: null }), atMs: nowMs - 20_000 }],
  ]);
  const report = board.report.bind(board);
  await using reports = new MemberReports({
    ...{ board, self: "self", isShared: true, status: () => Promise.resolve(REPORTED) },
    ...{ nowMs: () => nowMs, log: { debug() {} } },
  });
  const states = async (afterMs: number) => {
    nowMs += afterMs;
    await reports.exchange();
    return reports.list().map(({ id, state }) => `${id} ${state}`);
  };
  assert.deepEqual(await states(0), ["self running", "living running", "dead gone"]);
  board.report = () => Promise.reject(new Error("Cannot use the database"));
  assert.deepEqual(await states(60_000), ["self running", "living running", "dead gone"]);
  board.report = report;
  assert.deepEqual(await states(5_000), ["self running", "living running", "dead gone"]);
  for (const ms of [5_000, 5_000, 4_000]) {
    assert.deepEqual(await states(ms), ["self running", "living running", "dead gone"]);
  }
  assert.deepEqual(await states(1_000), ["self running", "living gone", "dead gone"]);
});

Deno.test("members: … also where a report of this one hung meanwhile, and did not fail", async () => {
  let nowMs = Date.now();
  const status = formatStatus(REPORTED);
  const board = new MemoryMemberBoard(() => nowMs, [["living", { status, atMs: nowMs }]]);
  const report = board.report.bind(board);
  await using reports = new MemberReports({
    ...{ board, self: "self", isShared: true, status: () => Promise.resolve(REPORTED) },
    ...{ nowMs: () => nowMs, log: { debug() {} } },
  });
  const states = async (afterMs: number, hangsMs = 0) => {
    nowMs += afterMs;
    board.report = (...given) => {
      nowMs += hangsMs;
      return report(...given);
    };
    await reports.exchange();
    return reports.list().map(({ id, state }) => `${id} ${state}`);
  };
  assert.deepEqual(await states(0), ["self running", "living running"]);
  assert.deepEqual(await states(5_000, 12_000), ["self running", "living running"]);
  assert.deepEqual(await states(5_000), ["self running", "living running"]);
  assert.deepEqual(await states(5_000), ["self running", "living running"]);
  assert.deepEqual(await states(5_000), ["self running", "living gone"]);
});

Deno.test("members: a report that failed is written again a second later", async () => {
  using time = new PlayedTime();
  const board = new MemoryMemberBoard(() => time.nowMs, []);
  const report = board.report.bind(board);
  await using reports = new MemberReports({
    ...{ board, self: "self", isShared: true, status: () => Promise.resolve(REPORTED) },
    ...{ nowMs: () => time.nowMs, log: { debug() {} } },
  });
  let reported = 0;
  board.report = (...given) => {
    if (++reported < 3) return Promise.reject(new Error("Cannot use the database"));
    return report(...given);
  };
  await reports.exchange();
  await time.advance(999);
  assert.equal(reported, 1);
  await time.advance(1);
  assert.equal(reported, 2);
  await time.advance(60_000);
  assert.equal(reported, 3, "one that was written waits for its time");
});

Deno.test("members: one that takes the place of a killed one leaves no report of it behind", async () => {
  const silent = { silentMs: 60_000 };
  const members = reportedMembers({
    killed: { ...silent, status: { host: "larder-1", url: null } },
    elsewhere: { ...silent, status: { host: "larder-2", url: null } },
  });
  await using cache = await TestCache.open({ upstreams: [], members });
  await cache.reportToMembers();
  const left = await members.board.report("host.1.other", "{}");
  assert.deepEqual(left.map(({ id }) => id), ["host.1.other", "test", "elsewhere"]);
});

Deno.test("members: their reports appear as text, whatever they look like", async () => {
  const under_way = Array.from({ length: 20 }, () => (
    { nar: "<b>", name: `${"<i>".repeat(40)}\u202e`, received_bytes: 1, file_bytes: null }
  ));
  const members = reportedMembers({
    markup: {
      status: {
        host: "<img src=x>",
        url: "javascript:alert(1)",
        downloads: { count: 1e9, under_way },
      },
    },
    "<script>": { text: "no JSON" },
    deep: { text: "[".repeat(16_000) },
    huge: { text: JSON.stringify({ host: "x".repeat(20_000) }) },
    odd: { text: `{"host":7,"started_at":"2026-99-01T00:00:00Z","hit_ratio":-1,"downloads":[]}` },
  });
  await using cache = await TestCache.open({ upstreams: [], members });
  await cache.reportToMembers();
  const page = await pageOf(cache);
  assert.match(page, /&lt;img src=x&gt;/);
  assert.match(page, /&lt;script&gt;/);
  assert.doesNotMatch(page, /<img|<script|<i>|href|\u202e|NaN|Infinity|undefined|Invalid/);
  assert.ok(page.length < 20_000, `${page.length} characters`);
  assert.equal((await membersOf(cache)).length, 6);
});

Deno.test("members: it tells them of its downloads, of a rate and of hits", async () => {
  const members = reportedMembers({}, { isShared: true });
  let nowMs = 1_800_000_000_000;
  await using scene = await GatedNar.open(object, { members, nowMs: () => nowMs });
  const { gate, cache, path } = scene;
  gate.release(1_000_000);
  const answer = await cache.get(path);
  await (await cache.get(path)).body?.cancel();
  nowMs += 10_000;
  await cache.reportToMembers();
  const [self] = await membersOf(cache);
  assert.deepEqual(self?.downloads.under_way.map(({ name }) => name), ["big-1.0"]);
  assert.equal(self?.downloads.count, 1);
  assert.equal(self?.requests_per_second, 0.3);
  assert.equal(self?.hit_ratio, 1 / 3);
  gate.open();
  await answer.bytes();
});

Deno.test("members: a board that does not answer leaves the page as it was", async () => {
  const members = reportedMembers({ other: {} });
  let isUnavailable = false;
  const board = {
    sharedNowMs: () => members.board.sharedNowMs(),
    report(id: string, status: string) {
      if (isUnavailable) return Promise.reject(new Failure("away", "Cannot use the database"));
      return members.board.report(id, status);
    },
    withdraw: () => Promise.reject(new Failure("away", "Cannot use the database")),
  };
  await using cache = await TestCache.open({ upstreams: [], members: { ...members, board } });
  await cache.reportToMembers();
  isUnavailable = true;
  await cache.reportToMembers();
  assert.equal((await membersOf(cache)).length, 2);
  assert.deepEqual(cache.logged("warn"), []);
});
