import assert from "node:assert/strict";
import type { WholePull } from "../../../../src/history/pulls.ts";
import { Html } from "../../../../src/http/page/markup.ts";
import { pullsPart, timelinePage } from "../../../../src/http/page/pulls_part.ts";
import { pullSentence, pullWords } from "../../../../src/http/stats/pull_words.ts";

const BEGIN_MS = Date.UTC(2026, 10, 27, 21, 10);

/** A request that one upstream answered. */
function from(host: string, times: { atMs: number; waitedMs: number; sentMs: number }) {
  const { waitedMs, sentMs } = times;
  return { ...times, isFromUpstream: true, upstreams: [{ host, waitedMs, sentMs }] };
}

/** The pull of the documentation. */
const PULL: WholePull = {
  ...{ id: "0a1b2c3d-4e5f", client: "laptop", beganAtMs: BEGIN_MS, ms: 18_000 },
  ...{ isRunning: false, underWay: 0, underWayMs: 0 },
  ...{ waitingMs: 15_000, fetchingMs: 0, sendingMs: 2_000, pauseMs: 1_000 },
  upstreams: [
    { host: "cache.nixos.org", paths: 2, waitedMs: 15_000, inVain: 0, sentPaths: 0, sentMs: 0 },
  ],
  first: "firefox-145.0",
  paths: { hit: 31, joined: 0, ahead: 9, fetched: 3, absent: 0 },
  ...{ bytes: 412 << 20, savedBytes: 380 << 20 },
  slowest: [
    {
      ...{ name: "<glibc>", result: "fetched", bytes: 5 << 20, ms: 14_000 },
      narinfo: from("cache.nixos.org", { atMs: 1_000, waitedMs: 12_000, sentMs: 0 }),
      nar: from("cache.nixos.org", { atMs: 14_000, waitedMs: 1_000, sentMs: 1_000 }),
    },
    {
      ...{ name: "openssl-3.6.0", result: "hit", bytes: 9, ms: 40 },
      narinfo: undefined,
      nar: { atMs: 17_900, waitedMs: 0, sentMs: 40, isFromUpstream: false, upstreams: [] },
    },
  ],
};

const shown = { pull: PULL, client: "laptop" };

Deno.test("pulls: a sentence says who waited for what, and what larder saved", () => {
  assert.equal(
    pullSentence(pullWords(PULL, "laptop", BEGIN_MS + 60_000)),
    "laptop, 21:10 UTC, firefox-145.0 and 42 more, 18 s: 15 s waited for cache.nixos.org " +
      "(2 paths), 2.0 s sending, 1.0 s of the client itself; 31 hits, 9 fetched ahead, " +
      "3 fetched; 412.0 MiB, of which 380.0 MiB saved",
  );
});

Deno.test("pulls: a sentence names the upstream at whose pace a file came", () => {
  const upstreams = [{
    host: "slow.org",
    paths: 1,
    waitedMs: 0,
    inVain: 0,
    sentPaths: 1,
    sentMs: 70_000,
  }];
  const slow = { ...PULL, waitingMs: 0, sendingMs: 0, fetchingMs: 70_000, ms: 71_000, upstreams };
  const { times } = pullWords(slow, "laptop", BEGIN_MS);
  assert.equal(
    times,
    "1 min 10 s fetching from slow.org (1 path), 1.0 s of the client itself",
  );
});

Deno.test("pulls: a sentence says each time of several upstreams that send once", () => {
  const none = { paths: 1, waitedMs: 0, inVain: 0 };
  const upstreams = [
    { ...none, host: "fast.org", sentPaths: 1, sentMs: 12 },
    { ...none, host: "slow.org", sentPaths: 2, sentMs: 10_000 },
  ];
  const slow = { ...PULL, waitingMs: 0, sendingMs: 0, pauseMs: 0, fetchingMs: 10_000, upstreams };
  assert.equal(
    pullWords(slow, "laptop", BEGIN_MS).times,
    "10 s fetching from slow.org (2 paths), 12 ms from fast.org (1 path)",
  );
});

Deno.test("pulls: a sentence says how long and for how many paths each upstream was waited for", () => {
  const none = { inVain: 0, sentPaths: 0, sentMs: 0 };
  const upstreams = [
    { ...none, host: "cache.nixos.org", paths: 2, waitedMs: 13_000 },
    { ...none, host: "cache.example.org", paths: 1, waitedMs: 2_000, inVain: 3 },
  ];
  assert.equal(
    pullWords({ ...PULL, upstreams }, "laptop", BEGIN_MS).times,
    "13 s waited for cache.nixos.org (2 paths), 2.0 s for cache.example.org " +
      "(1 path, 3 asked in vain), 2.0 s sending, 1.0 s of the client itself",
  );
  const [first, second] = upstreams.map((one) => ({ ...one, inVain: 0, waitedMs: 15_000 }));
  const sideBySide = [first, second].filter((one) => one !== undefined);
  assert.match(
    pullWords({ ...PULL, upstreams: sideBySide }, "laptop", BEGIN_MS).times,
    /^15 s waited for cache\.nixos\.org \(2 paths\) and meanwhile 15 s for cache\.example\.org/,
  );
});

Deno.test("pulls: the longest share of the time stands first", () => {
  const slow = { ...PULL, waitingMs: 1_000, fetchingMs: 100, sendingMs: 15_000, pauseMs: 1_900 };
  const upstreams = [{
    ...{ host: "cache.nixos.org", paths: 2, waitedMs: 1_000 },
    ...{ inVain: 0, sentPaths: 1, sentMs: 100 },
  }];
  assert.equal(
    pullWords({ ...slow, upstreams }, "laptop", BEGIN_MS).times,
    "15 s sending, 1.9 s of the client itself, 1.0 s waited for cache.nixos.org (2 paths), " +
      "100 ms fetching from cache.nixos.org (1 path)",
  );
});

Deno.test("pulls: one that runs says so, and how long nothing has ended", () => {
  const running = { ...PULL, isRunning: true, underWay: 2, underWayMs: 25_000 };
  const { title, paths } = pullWords(running, "laptop", BEGIN_MS);
  assert.equal(title, "laptop, 21:10 UTC, firefox-145.0 and 42 more, running, 18 s so far");
  assert.match(paths, /3 fetched, 2 requests under way for 25 s$/);
  const html = String(pullsPart([{ pull: running, client: "laptop" }], BEGIN_MS));
  assert.match(
    html,
    />Running pull: firefox-145\.0 and 42 more, 18 s so far, of which 15 s waiting for /,
  );
});

Deno.test("page: pulls lead to their timelines, and none is no section", () => {
  assert.equal(pullsPart([], BEGIN_MS), false);
  const html = String(pullsPart([shown], BEGIN_MS));
  assert.match(
    html,
    />Last pull: firefox-145\.0 and 42 more, 18 s, of which 15 s waiting for cache\.nixos\.org<\/summary>/,
  );
  assert.match(html, /href="pulls\/0a1b2c3d-4e5f">firefox-145\.0 and 42 more<\/a>/);
  assert.match(html, /laptop, 21:10 UTC, 18 s: 15 s waited for cache\.nixos\.org \(2 paths\)/);
  const widths = [...html.matchAll(/<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"/g)]
    .map(([, share, x, width]) => [share, Number(x), Number(width)]);
  assert.deepEqual(widths, [
    ["waiting", 0, 833.3],
    ["sending", 833.3, 111.1],
    ["pause", 944.4, 55.6],
  ]);
});

Deno.test("page: a timeline draws each slow path where its time went, the slowest first", () => {
  const look = { style: new Html("<style></style>"), icon: "data:,", nowMs: BEGIN_MS };
  const html = String(timelinePage(shown, look));
  assert.match(html, /^<!DOCTYPE html>/);
  assert.ok(!html.includes("<script"), "it works without scripts");
  assert.ok(!html.includes("<glibc>") && html.includes("&lt;glibc&gt;"), "names are text");
  const [, slowest = "", second = ""] = html.split("<li>");
  assert.match(
    slowest,
    /waited 12 s for the narinfo and 1\.0 s for the NAR from cache\.nixos\.org, sent in 1\.0 s/,
  );
  const bars = [...slowest.matchAll(/<rect class="(\w+)" x="([\d.]+)"/g)]
    .map(([, share, x]) => [share, Number(x)]);
  assert.deepEqual(bars, [["waiting", 55.6], ["waiting", 777.8], ["fetching", 833.3]]);
  assert.match(second, /<b>openssl-3\.6\.0<\/b> <span class="quiet">sent in 40 ms, 9 B<\/span>/);
  assert.match(html, /41 paths more took less time/);
});

Deno.test("page: of a pull it says the time of one kind alone, and never the whole twice", () => {
  const line = (ms: number, waitedMs: number, sentMs: number) => {
    const times = { waitedMs, sentMs, paths: 1, inVain: 0, sentPaths: 1 };
    const upstreams = [{ host: "a.org", ...times }];
    const pull = { ...PULL, ms, waitingMs: waitedMs, fetchingMs: sentMs, upstreams };
    return /, ((?:of which|almost).*)<\/summary>/.exec(
      String(pullsPart([{ ...shown, pull }], BEGIN_MS)),
    )?.[1];
  };
  assert.equal(line(15_000, 3_600, 11_000), "of which 11 s fetching from a.org");
  assert.equal(line(15_000, 11_000, 3_600), "of which 11 s waiting for a.org");
  assert.equal(line(14_000, 0, 13_900), "almost all of it fetching from a.org");
  assert.equal(line(14_000, 20_000, 0), "almost all of it waiting for a.org");
});
