import assert from "node:assert/strict";
import { DATABASE_AWAY, Failure } from "../../src/base/failure.ts";
import { Planner } from "../../src/cache/plan/planner.ts";
import { type Answer, statusAnswer } from "../../src/http/message/message.ts";
import { planRoute, type PlanRouteDeps, planTurns } from "../../src/http/routes/plan.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { heldUntil, status } from "../support/faults.ts";
import { PlayedTime } from "../support/played_time.ts";
import { prefetchingCache } from "../support/prefetching.ts";
import { runLarder } from "../support/run_larder.ts";
import { scrape } from "../support/scrape.ts";
import { chain, makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestListener } from "../support/test_listener.ts";
import { TestCache } from "../support/test_cache.ts";

const objects = chain(4) as [StoreObject, StoreObject, StoreObject, StoreObject];
const [leaf, second, , top] = objects;
const ABSENT = "0".repeat(32);
const HOUR_MS = 3_600_000;

interface Line {
  readonly event: string;
  readonly [fact: string]: unknown;
}

async function answerTo(cache: TestCache, body: string): Promise<Response> {
  return await cache.post("/plan", body);
}

async function planned(cache: TestCache, ...lines: readonly string[]): Promise<readonly Line[]> {
  const answer = await answerTo(cache, lines.join("\n"));
  assert.equal(answer.status, 200);
  return (await answer.text()).trim().split("\n").map((line) => JSON.parse(line));
}

/** "link-3 upstream" for each path, sorted. */
function statesIn(lines: readonly Line[]): readonly string[] {
  assert.equal(lines.at(-1)?.event, "done");
  return lines.slice(0, -1).map(({ name, hash, state }) => `${name ?? hash} ${state}`).sort();
}

async function pull(cache: TestCache, { storePathHash }: StoreObject): Promise<void> {
  await (await cache.get(await cache.narPath(storePathHash))).bytes();
  await cache.downloadsOver();
}

Deno.test("plan: one that loses the database says so in its last line, and breaks", async () => {
  const path = { hash: leaf.storePathHash, name: "a", state: "here", nar: null, bytes: 1 } as const;
  const planner: PlanRouteDeps["planner"] = {
    upstreams: () => [],
    async planClosure(_roots, { tell }) {
      for (let count = 0; count < 3; count++) await tell({ ...path, upstreams: [] });
      throw new Failure("away", "Cannot use the database");
    },
  };
  using turns = planTurns();
  const { POST } = planRoute({ planner, turns, log: { debug() {} } }).methods;
  const answers: Answer[] = [];
  await using server = new TestListener({
    async handle(request) {
      const routed = { request, requestId: "", head: false, params: [], caller: undefined };
      const mayManage = () => Promise.resolve(true);
      const answer = await POST?.({ ...routed, mayManage }) ?? statusAnswer(405, false);
      answers.push(answer);
      return answer;
    },
  });
  const answer = await fetch(server.url, { method: "POST", body: `${leaf.storePath}\n` });
  let text = "";
  await assert.rejects(async () => {
    const decoder = new TextDecoder();
    for await (const piece of answer.body ?? []) text += decoder.decode(piece);
  });
  const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ event }) => event), ["path", "path", "path", "failed"]);
  const { part, reason } = lines.at(-1);
  assert.deepEqual([part, reason], ["database", DATABASE_AWAY]);
  assert.deepEqual(answers[0]?.failed, { part: "database", error: "Cannot use the database" });
  const env = { LARDER_SERVER: server.url };
  const { status, err } = await runLarder(["plan", leaf.storePath], { env });
  assert.equal(status, 1);
  assert.match(err, /larder: the run ended early: the database does not answer; try again/);
});

Deno.test("plan: each path of a closure is here, upstream or nowhere, and no NAR is fetched", async () => {
  const missing = makeStoreObject({ name: "missing-1" });
  const root = makeStoreObject({ name: "root-1", references: [top, missing] });
  await using upstream = await fakeUpstream({ objects: [...objects, root], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await pull(cache, leaf);
  const nars = upstream.count(/^\/nar\//);

  const lines = await planned(cache, root.storePath);
  assert.deepEqual(statesIn(lines), [
    "link-0 here",
    "link-1 upstream",
    "link-2 upstream",
    "link-3 upstream",
    "missing-1 nowhere",
    "root-1 upstream",
  ]);
  assert.equal(upstream.count(/^\/nar\//), nars);
  const offered = lines.find(({ name }) => name === "link-1");
  assert.deepEqual([offered?.upstreams, offered?.hash], [[upstream.url], second.storePathHash]);
  assert.equal(typeof offered?.bytes, "number");
  const ends = JSON.parse(JSON.stringify(lines.at(-1)?.upstreams));
  assert.equal(typeof ends[0].latency_ms, "number", "narinfos were asked for");
  assert.deepEqual(ends, [{
    ...{ url: upstream.url, is_up: true, bytes_per_second: null },
    latency_ms: ends[0].latency_ms,
  }]);
});

Deno.test("plan: the narinfos are asked for once, and a client then has them as hits", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await planned(cache, top.storePathHash);
  await planned(cache, top.baseName);
  assert.equal(upstream.count(/\.narinfo$/), objects.length);
  assert.equal((await cache.get(`/${leaf.storePathHash}.narinfo`)).headers.get("x-cache"), "HIT");
});

Deno.test("plan: it is no use, no hit and no miss, and prefetches nothing", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const before = await scrape(cache);
  await planned(cache, top.storePath, ABSENT);
  await cache.prefetchOver();
  const after = await scrape(cache);
  for (const series of ["larder_cache_requests_total", "larder_prefetch_total"]) {
    assert.deepEqual(after.nonZero(series), before.nonZero(series), series);
  }
  assert.equal(upstream.count(/^\/nar\//), 0);
  const { usedAtMs } = await cache.metadata.pathTimes(top.storePathHash);
  assert.equal(usedAtMs, undefined);
});

Deno.test("plan: paths that the client knows are left out, with what only they reach", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.deepEqual(statesIn(await planned(cache, top.storePath, `-${second.storePathHash}`)), [
    "link-2 upstream",
    "link-3 upstream",
  ]);
});

Deno.test("plan: a path last seen upstream over an hour ago is asked for again", async () => {
  let now = Date.now();
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => now });
  await planned(cache, leaf.storePath);
  now += 2 * HOUR_MS;
  assert.deepEqual(statesIn(await planned(cache, leaf.storePath)), ["link-0 upstream"]);
  assert.equal(upstream.count(/\.narinfo$/), 2);
  upstream.breakNarinfo(status(404));
  assert.deepEqual(statesIn(await planned(cache, leaf.storePath)), ["link-0 nowhere"]);
  upstream.breakNarinfo(status(500));
  assert.deepEqual(statesIn(await planned(cache, leaf.storePath)), ["link-0 unknown"]);
});

Deno.test("plan: an upstream that fails is no absence", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  upstream.breakNarinfo(status(500));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.deepEqual(statesIn(await planned(cache, leaf.storePath)), [
    `${leaf.storePathHash} unknown`,
  ]);
});

Deno.test("plan: what is no list of store paths is 400, and too long a one 413", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const none = "expected a store path or its hash on each line: there is none";
  const inLine = (line: number) => `expected a store path or its hash in line ${line}`;
  const bad: readonly (readonly [body: string, said: string])[] = [
    ...["", "\n", `-${ABSENT}`].map((body) => [body, none] as const),
    ["hello", inLine(1)],
    [`${ABSENT}\n/etc/passwd`, inLine(2)],
    ["\0", inLine(1)],
    ["\n".repeat(4_999_999), "expected at most 50000 lines"],
  ];
  for (const [body, said] of bad) {
    const answer = await answerTo(cache, body);
    assert.deepEqual([answer.status, await answer.text()], [400, `${said}\n`]);
  }
  const large = await answerTo(cache, "a".repeat(6_000_000));
  assert.deepEqual([large.status, await large.text()], [413, "expected at most 5000000 bytes\n"]);
  assert.deepEqual(statesIn(await planned(cache, ABSENT)), [`${ABSENT} nowhere`]);
});

Deno.test("plan: a client that leaves ends its plan, and the next one has its turn", async () => {
  const wide = Array.from({ length: 300 }, (_, at) => makeStoreObject({ name: `wide-${at}` }));
  await using upstream = await fakeUpstream({ objects: wide, stored: true });
  const held = Promise.withResolvers<void>();
  upstream.breakNarinfo(heldUntil(held.promise));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const client = new AbortController();
  const body = wide.map(({ storePath }) => storePath).join("\n");
  const plan = fetch(`${server.url}/plan`, { method: "POST", body, signal: client.signal })
    .then((answer) => answer.text()).catch(() => "left");
  await eventually("it asks", () => Promise.resolve(upstream.count(/\.narinfo$/) === 64));
  client.abort();
  assert.equal(await plan, "left");
  const next = planned(cache, ABSENT);
  held.resolve();
  assert.deepEqual(statesIn(await next), [`${ABSENT} nowhere`]);
  assert.equal(upstream.count(/\.narinfo$/), 65, "64 that were under way, and the next client's");
});

/** More lines than wait for a client. */
const MANY = Array.from({ length: 3_000 }, (_, at) => String(at).padStart(32, "0"));

Deno.test("plan: a long one comes whole, at the pace of its client", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  assert.equal(statesIn(await planned(cache, ...MANY)).length, MANY.length);
});

Deno.test("plan: a client that takes nothing for ten seconds loses its plan to the next", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  using time = new PlayedTime();
  const stalled = await answerTo(cache, MANY.join("\n"));
  const next = answerTo(cache, ABSENT);
  await time.advance(9_000);
  await time.advance(2_000);
  assert.equal((await next).status, 200);
  await assert.rejects(stalled.text(), /the client stalls/);
});

Deno.test("plan: over the most paths, it says so", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await planned(cache, top.storePath);
  const { metadata } = cache;
  const planner = new Planner({
    ...{ metadata, pathsMax: 3, nowMs: Date.now },
    kept: { canOpen: () => Promise.resolve(false), lostAtMs: () => undefined },
    negative: { has: () => false },
    narinfoFetches: Object(undefined),
    pool: Object({ order: () => [upstream.url], probeIfDown: () => Promise.resolve() }),
    rates: { of: () => undefined },
    lastAnswers: Object({ of: () => ({ latenciesMs: [] }) }),
  });
  const { signal } = new AbortController();
  const plan = planner.planClosure([top.storePathHash], {
    ...{ requestId: "test", signal },
    tell: () => undefined,
  });
  await assert.rejects(plan, { message: "Cannot plan: over 3 paths" });
});

/** The page's answer to a search, as text. */
async function searched(cache: TestCache, query: string): Promise<string> {
  const url = `/?q=${encodeURIComponent(query)}`;
  return foundIn(await (await cache.get(url, { accept: "text/html" })).text());
}

/** The same for a search by the form of the page. */
async function searchedByForm(cache: TestCache, q: string): Promise<[number, string]> {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const body = new URLSearchParams({ q }).toString();
  const answer = await cache.post("/", body, headers);
  return [answer.status, foundIn(await answer.text())];
}

function foundIn(html: string): string {
  const part = /<\/form>([^]*?)<h3>Pins/.exec(html.slice(html.indexOf('id="query"')))?.[1] ?? html;
  return part.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

for (const [between, gap] of [["blanks", " "], ["line ends", "\r\n"], ["nothing", ""]] as const) {
  Deno.test(`page: a list of store paths with ${between} between them has a row for each`, async () => {
    await using upstream = await fakeUpstream({ objects: [leaf, second], stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    await pull(cache, leaf);
    const paths = [leaf, second, top].map(({ storePath }) => storePath);
    const text = await searched(cache, paths.join(gap));
    assert.match(text, /here link-0 .*upstream link-1 .*nowhere .*link-3/);
    const { listed } = await (await cache.get(
      `/explain?q=${encodeURIComponent(paths.join(gap))}`,
    )).json();
    assert.deepEqual(listed.paths.map(({ state }: Line) => state), ["here", "upstream", "nowhere"]);
    assert.deepEqual([listed.count, listed.unreadable], [3, []]);
  });
}

Deno.test("page: of a list it shows 100 paths, missing ones first, and says which words are none", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const many = Array.from({ length: 120 }, (_, at) => String(100 + at).repeat(11).slice(0, 32));
  const text = await searched(cache, [...many, "hello?", "<b>"].join(" "));
  assert.match(text, /These are 100 of 120, the missing ones first\./);
  assert.match(text, /This is no store path and no hash: hello\? &lt;b>|&lt;b&gt;/);
});

Deno.test("page: the form of the search takes a list as long as a plan", async () => {
  await using upstream = await fakeUpstream({ objects: [leaf], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await pull(cache, leaf);
  const paths = MANY.map((hash) => `/nix/store/${hash}-some-name-1.2`);
  const [status, text] = await searchedByForm(cache, [leaf.storePath, ...paths].join("\r\n"));
  assert.equal(status, 200);
  assert.match(text, /^ ?Of 3,001 paths: 1 here, 3,000 nowhere\. nowhere some-name-1\.2/);
  assert.doesNotMatch(text, /link-0/, "what is missing comes first");
  assert.match(text, /These are 100 of 3001, the missing ones first\./);
});

Deno.test("page: a search longer than a plan, or none, is 4xx with a sentence", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const many = Array.from({ length: 50_001 }, (_, at) => String(at).padStart(32, "0"));
  const [status, text] = await searchedByForm(cache, many.join(" "));
  assert.equal(status, 400);
  assert.match(text, /This list is too long: expected at most 50,000 store paths\./);
  assert.deepEqual(await searchedByForm(cache, "a".repeat(5_000_000)), [
    413,
    "expected at most 5000000 bytes ",
  ]);
  const answer = await cache.post("/", leaf.storePath);
  assert.deepEqual([answer.status, await answer.text()], [
    400,
    "expected the search of the page: a form with the field q\n",
  ]);
});
