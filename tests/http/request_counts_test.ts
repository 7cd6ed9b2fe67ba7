import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rawRequest } from "../support/raw_http.ts";
import { scrape } from "../support/scrape.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 1_000_000 });
const HASH = object.storePathHash;
const NARINFO = `/${HASH}.narinfo`;
const ABSENT = `/${"0".repeat(32)}.narinfo`;
const UNKNOWN_NAR = `/nar/${"0".repeat(52)}.nar.xz`;

async function cacheRequests(cache: TestCache): Promise<Readonly<Record<string, number>>> {
  return (await scrape(cache)).nonZero("larder_cache_requests_total");
}

function of(kind: "narinfo" | "nar", result: string): string {
  return `{kind="${kind}",result="${result}"}`;
}

Deno.test("request counts: a narinfo counts by where it came from, HEAD like GET", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.head(NARINFO);
  await cache.head(NARINFO);
  await cache.get(NARINFO);
  await cache.get(ABSENT);
  await cache.head(ABSENT);
  await cache.get("/no-hash.narinfo");
  assert.deepEqual(await cacheRequests(cache), {
    [of("narinfo", "miss")]: 2,
    [of("narinfo", "hit")]: 2,
    [of("narinfo", "negative")]: 1,
  });
});

Deno.test("request counts: a NAR counts likewise, whatever the status", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const nar = await cache.narPath(HASH);
  await cache.head(nar);
  await (await cache.get(nar)).bytes();
  await cache.downloadsOver();
  await cache.head(nar);
  const { headers } = await cache.get(nar, { range: "bytes=999999999-" });
  assert.match(headers.get("content-range") ?? "", /^bytes \*/);
  await cache.get(UNKNOWN_NAR);
  await cache.head(UNKNOWN_NAR);
  await cache.get("/nar/no-name");
  assert.deepEqual(await cacheRequests(cache), {
    [of("narinfo", "miss")]: 1,
    [of("nar", "miss")]: 2,
    [of("nar", "hit")]: 2,
    [of("nar", "negative")]: 2,
  });
});

Deno.test("request counts: a NAR that nobody sends is a miss", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const nar = await cache.narPath(HASH);
  await upstream.stop();
  assert.equal((await cache.get(nar)).status, 404);
  assert.equal((await cacheRequests(cache))[of("nar", "miss")], 1);
});

Deno.test("request counts: what is passed on without being kept was received too", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000 });
  const { length } = await (await cache.get(await cache.narPath(HASH))).bytes();
  const after = await scrape(cache);
  assert.equal(after.value("larder_upstream_bytes_total"), length);
  const asked = "larder_upstream_request_duration_seconds_count";
  // The narinfo and the NAR.
  assert.equal(after.value(`${asked}{upstream="${upstream.url}",result="found"}`), 2);
});

Deno.test("request counts: what is no request is counted and logged too", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  await rawRequest(server.port, "hello\r\n\r\n");
  await rawRequest(server.port, `GET / HTTP/1.1\r\nHost: x\r\nA: ${"a".repeat(20_000)}\r\n\r\n`);
  const requests = "http_server_requests_total";
  await eventually("both are counted", async () => {
    const counted = (await scrape(cache)).nonZero(requests);
    const refused = (status: number) =>
      counted[`{method="OTHER",route="unmatched",status="${status}",outcome="complete"}`];
    return refused(400) === 1 && refused(431) === 1;
  });
  assert.equal((await scrape(cache)).value("http_server_active_requests"), 1);
  const lines = cache.log.filter(({ msg, reason }) => msg === "request" && reason !== undefined);
  assert.deepEqual(lines.map(({ level, status, reason }) => [level, status, reason]), [
    ["debug", 400, "no request line of HTTP/1"],
    ["debug", 431, "large head"],
  ]);
});

Deno.test("request counts: what a route does not take has no series until it happens", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const brewed = 'http_server_requests_total{method="OTHER",route="/healthz"';
  assert.ok(!(await scrape(cache)).text.includes(brewed));
  await cache.request("BREW", "/healthz");
  assert.ok((await scrape(cache)).text.includes(`${brewed},status="405",outcome="complete"} 1`));
});

Deno.test("upstream_up: 0 while an upstream is down, 1 once it is back", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const isUp = async () =>
    (await scrape(cache)).value(`larder_upstream_up{upstream="${upstream.url}"}`);
  assert.equal(await isUp(), 1);
  await upstream.stop();
  await cache.get(ABSENT);
  assert.equal(await isUp(), 0, "what was asked did not come");
  await upstream.start();
  await cache.get(NARINFO);
  assert.equal(await isUp(), 1);
  await upstream.stop();
  for (let seed = 1; seed <= 3; seed++) await cache.get(`/${String(seed).repeat(32)}.narinfo`);
  assert.equal(await isUp(), 0);
  await upstream.start();
  await eventually("it is up again", async () => await isUp() === 1);
});
