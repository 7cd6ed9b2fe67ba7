import assert from "node:assert/strict";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { corruptByteAt } from "../support/faults.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { programsMissing, runWithInput, testUnless } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { scrape } from "../support/scrape.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "big-1.0", size: 4_000_000 });
const HASH = object.storePathHash;
const ABSENT = "0".repeat(32);
const requests = "http_server_requests_total";

function labels(method: string, route: string, status: number, outcome = "complete"): string {
  return `{method="${method}",route="${route}",status="${status}",outcome="${outcome}"}`;
}

async function cacheBefore(upstream: FakeUpstream): Promise<TestCache> {
  return await TestCache.open({ upstreams: [upstream] });
}

Deno.test("metrics: /metrics is 404 unless it is enabled", async () => {
  await using cache = await TestCache.open({ upstreams: [], hasMetricsRoute: false });
  assert.equal((await cache.get("/metrics")).status, 404);
});

Deno.test("metrics: every answer is counted, by method, route and status", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await cacheBefore(upstream);
  const nar = await cache.narPath(HASH);
  await (await cache.get(nar)).bytes();
  await (await cache.get(nar, { range: "bytes=0-9" })).bytes();
  await cache.get(nar, { range: `bytes=${10 ** 12}-` });
  await cache.head(nar);
  await cache.get(`/${ABSENT}.narinfo`);
  await cache.request("BREW", `/${ABSENT}.narinfo`);
  await cache.request("PATCH", "/nothing/here");
  await cache.get("/%2f");
  await cache.head("/metrics");

  const narRoute = "/nar/{name}";
  assert.deepEqual((await scrape(cache)).nonZero(requests), {
    [labels("GET", "/{hash}.narinfo", 200)]: 1,
    [labels("GET", "/{hash}.narinfo", 404)]: 1,
    [labels("OTHER", "/{hash}.narinfo", 405)]: 1,
    [labels("GET", narRoute, 200)]: 1,
    [labels("GET", narRoute, 206)]: 1,
    [labels("GET", narRoute, 416)]: 1,
    [labels("HEAD", narRoute, 200)]: 1,
    [labels("HEAD", "/metrics", 200)]: 1,
    [labels("OTHER", "unmatched", 404)]: 1,
    [labels("GET", "unmatched", 400)]: 1,
  });
  const again = await scrape(cache);
  assert.equal(again.value(requests + labels("GET", "/metrics", 200)), 1);
  assert.equal(again.value("http_server_active_requests"), 1);
  const duration = `http_server_request_duration_seconds_count{method="GET",route="${narRoute}"}`;
  assert.equal(again.value(duration), 3);
});

Deno.test("metrics: a body is active until its last byte, and counted after it", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, server, path } = scene;
  gate.release(100_000);
  const answer = await fetch(server.url + path);
  const during = await scrape(cache);
  assert.equal(during.value("http_server_active_requests"), 2);
  assert.equal(during.value("larder_in_flight_downloads"), 1);
  assert.equal(during.value(requests + labels("GET", "/nar/{name}", 200)), 0);

  gate.open();
  const { length } = await answer.bytes();
  await eventually("the answer is counted", async () => {
    return (await scrape(cache)).value(requests + labels("GET", "/nar/{name}", 200)) === 1;
  });
  await cache.downloadsOver();
  const after = await scrape(cache);
  assert.equal(after.value("http_server_active_requests"), 1);
  assert.equal(after.value("larder_in_flight_downloads"), 0);
  assert.equal(after.value('larder_served_bytes_total{kind="nar",source="miss"}'), length);
  assert.equal(after.value("larder_upstream_bytes_total"), length);
});

Deno.test("metrics: a response whose client leaves is counted as aborted", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, server, path } = scene;
  gate.release(100_000);
  const stopAfterBodyBytes = 1_000;
  await rawRequest(server.port, requestText("GET", path), { stopAfterBodyBytes });
  gate.open();
  await eventually("the client's leaving is counted", async () => {
    return (await scrape(cache)).value(requests + labels("GET", "/nar/{name}", 200, "aborted")) ===
      1;
  });
  await cache.downloadsOver();
});

Deno.test("metrics: a response that we break off is counted as broken", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(corruptByteAt(1_000_000));
  await using cache = await cacheBefore(upstream);
  await using server = cache.listen();
  const answer = await fetch(server.url + await cache.narPath(HASH));
  await assert.rejects(answer.bytes());
  await eventually("our breaking it is counted", async () => {
    return (await scrape(cache)).value(requests + labels("GET", "/nar/{name}", 200, "broken")) ===
      1;
  });
  assert.equal((await scrape(cache)).value("http_server_active_requests"), 1);
});

Deno.test("metrics: upstream requests are timed by result", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await cacheBefore(upstream);
  await (await cache.get(await cache.narPath(HASH))).bytes();
  await cache.get(`/${ABSENT}.narinfo`);
  await cache.downloadsOver();
  await upstream.stop();
  await cache.get(`/${"1".repeat(32)}.narinfo`);
  const count = (await scrape(cache)).nonZero("larder_upstream_request_duration_seconds_count");
  const by = (result: string) => `{upstream="${upstream.url}",result="${result}"}`;
  assert.deepEqual(count, { [by("found")]: 2, [by("absent")]: 1, [by("unreachable")]: 1 });
});

Deno.test("metrics: a scrape asks the database nothing", async () => {
  await using cache = await TestCache.open({ upstreams: ["http://127.0.0.1:1"] });
  await cache.metadata[Symbol.asyncDispose]();
  // With the database closed whatever asked it would throw.
  assert.equal((await scrape(cache)).value("larder_cache_size_bytes"), 0);
});

testUnless(
  programsMissing("promtool"),
  "metrics: promtool finds nothing wrong with them",
  async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    const metrics = new Metrics({
      groups: ["analytics", "redis", "otel"],
      domains: { upstreams: [upstream.url] },
    });
    await using cache = await TestCache.open({ upstreams: [upstream], metrics });
    await cache.narinfo(HASH);
    const { text } = await scrape(cache);
    const { code, output } = await runWithInput("promtool", ["check", "metrics"], text);
    assert.deepEqual({ code, output }, { code: 0, output: "" });
  },
);

Deno.test("metrics: an idle server's are small, and have the usual answers", async () => {
  const upstreams = [1, 2, 3, 4].map((port) => `http://127.0.0.1:${port}`);
  await using cache = await TestCache.open({ upstreams, allowDelete: true });
  const idle = await scrape(cache);
  assert.ok(idle.text.length <= 60_000, `${idle.text.length} bytes`);
  const narinfo = "/{hash}.narinfo";
  for (
    const series of [
      ...[labels("GET", narinfo, 200), labels("GET", narinfo, 404), labels("HEAD", narinfo, 404)],
      ...[labels("GET", "/nar/{name}", 206), labels("GET", "/nar/{name}", 200, "broken")],
      ...[
        labels("POST", "/gc", 200),
        labels("GET", "/stats", 500),
        labels("GET", "unmatched", 404),
      ],
    ]
  ) assert.equal(idle.value(requests + series), 0, series);
});
