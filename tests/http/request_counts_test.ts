import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, firstTimes, status } from "../support/faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
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
    [of("nar", "miss")]: 3,
    [of("nar", "hit")]: 2,
    [of("nar", "negative")]: 1,
  });
});

for (const [how, limitBytes] of [["kept", undefined], ["passed through", 1_000]] as const) {
  Deno.test(`request counts: a NAR to be ${how} that no upstream has is a miss`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using cache = await TestCache.open({
      upstreams: [upstream],
      ...(limitBytes === undefined ? {} : { limitBytes }),
    });
    const nar = await cache.narPath(HASH);
    upstream.onRequest = () => new Response(null, { status: 404 });
    assert.equal((await cache.head(nar)).status, 404);
    assert.equal((await cache.get(nar)).status, 404);
    assert.deepEqual(await cacheRequests(cache), {
      [of("narinfo", "miss")]: 1,
      [of("nar", "miss")]: 2,
    });
  });
}

Deno.test("request counts: bytes that pass through count as received too", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000 });
  const { length } = await (await cache.get(await cache.narPath(HASH))).bytes();
  const after = await scrape(cache);
  assert.equal(after.value("larder_upstream_bytes_total"), length);
  assert.equal(after.value('larder_nar_not_kept_total{reason="no_room"}'), 1);
  assert.equal(after.value('larder_nar_not_kept_total{reason="disk_error"}'), 0);
  const asked = "larder_upstream_request_duration_seconds_count";
  // The narinfo and the NAR.
  assert.equal(after.value(`${asked}{upstream="${upstream.url}",result="found"}`), 2);
});

/** Below the size of the NAR file nothing is kept. */
const LIMITS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [how, limitBytes] of Object.entries(LIMITS)) {
  Deno.test(`request counts: a NAR's status and its broken body differ, ${how}`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream], limitBytes });
    const path = await cache.narPath(HASH);
    const fileSize = (await upstream.narFileOf(object)).bytes.length;
    const results = async () => (await scrape(cache)).upstreamResults(upstream.url);
    upstream.breakNar(status(500));
    await (await cache.get(path)).bytes();
    await cache.downloadsOver();
    assert.deepEqual(await results(), { found: 1, status: 1 });
    upstream.mend();
    upstream.breakNar(firstTimes(1, cutAfter(200_000)));
    assert.equal((await (await cache.get(path)).bytes()).length, fileSize);
    await cache.downloadsOver();
    assert.deepEqual(await results(), { found: 2, status: 1, broken: 1 });
  });
}

Deno.test("request counts: a narinfo's bad status is one, too", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNarinfo(status(500));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.get(NARINFO);
  assert.deepEqual((await scrape(cache)).upstreamResults(upstream.url), { status: 1 });
});

Deno.test("request counts: a malformed request is counted and logged too", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  await rawRequest(server.port, "hello\r\n\r\n");
  await rawRequest(server.port, `GET / HTTP/1.1\r\nHost: x\r\nA: ${"a".repeat(20_000)}\r\n\r\n`);
  await rawRequest(server.port, "POST / HTTP/1.1\r\n\r\n");
  const requests = "http_server_requests_total";
  const refused = (method: string, status: number) =>
    `${requests}{method="${method}",route="unmatched",status="${status}",outcome="complete"}`;
  await eventually("all are counted", async () => {
    const counted = await scrape(cache);
    return [refused("OTHER", 400), refused("GET", 431), refused("POST", 400)]
      .every((series) => counted.value(series) === 1);
  });
  assert.equal((await scrape(cache)).value("http_server_active_requests"), 1);
  const lines = cache.log.filter(({ msg, reason }) => msg === "request" && reason !== undefined);
  const facts = lines.map(({ level, method, status, bytes, duration_ms, reason }) => {
    return [level, method, status, bytes, duration_ms, reason];
  });
  const TOO_LARGE = "Request Header Fields Too Large: the head has over 16384 bytes; " +
    "expected at most 16384 for path and headers\n";
  assert.deepEqual(facts, [
    ["debug", "OTHER", 400, "Bad Request\n".length, 0, "invalid request line"],
    ["debug", "GET", 431, TOO_LARGE.length, 0, "head too large"],
    ["debug", "POST", 400, "Bad Request\n".length, 0, "invalid host"],
  ]);
});

Deno.test("request counts: no counter begins with the first usual answer", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const countersOf = async () => {
    const lines = (await scrape(cache)).text.split("\n");
    return lines.filter((line) => /^\w+_total/.test(line))
      .map((line) => line.slice(0, line.lastIndexOf(" "))).sort();
  };
  const before = await countersOf();
  const nar = await cache.narPath(HASH);
  for (const path of [NARINFO, nar, ABSENT, `/nar/${"0".repeat(52)}.nar`]) {
    for (const method of ["GET", "HEAD"]) {
      await (await cache.request(method, path)).body?.cancel();
    }
  }
  const tag = { "if-none-match": "*" };
  for (const headers of [{ range: "bytes=0-9" }, { range: "bytes=999999999-" }, tag]) {
    await (await cache.get(nar, headers)).body?.cancel();
  }
  await rawRequest(server.port, requestText("GET", nar), { stopAfterBodyBytes: 1_000 });
  for (
    const path of [
      ...[`/${HASH}.ls`, `/log/${HASH}-thing.drv`, "/debuginfo/aa", "/", "/stats", "/pins"],
      ...["/pins/closures", "/nix-cache-info", "/pubkey", "/healthz", "/readyz", "/metrics"],
      ...["/pins/names", "/nothing", "/%2f"],
    ]
  ) await (await cache.get(path)).body?.cancel();
  for (const method of ["POST", "DELETE"]) {
    await (await cache.request(method, `/pin/${HASH}.narinfo`)).text();
  }
  await (await cache.request("POST", "/gc?target=1000000000")).text();
  await rawRequest(server.port, "hello\r\n\r\n");
  await cache.downloadsOver();
  assert.deepEqual(await countersOf(), before);
});

Deno.test("upstream_up: 0 while an upstream is down, 1 once it is back", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const isUp = async () =>
    (await scrape(cache)).value(`larder_upstream_up{upstream="${upstream.url}"}`);
  assert.equal(await isUp(), 1);
  await upstream.stop();
  await cache.get(ABSENT);
  assert.equal(await isUp(), 0, "the requested file did not come");
  await upstream.start();
  await cache.get(NARINFO);
  assert.equal(await isUp(), 1);
  await upstream.stop();
  for (let seed = 1; seed <= 3; seed++) await cache.get(`/${String(seed).repeat(32)}.narinfo`);
  assert.equal(await isUp(), 0);
  await upstream.start();
  await eventually("it is up again", async () => await isUp() === 1);
});
