import assert from "node:assert/strict";
import { OTLP_RECEIVER_UNAVAILABLE, OtlpReceiver } from "../support/otlp_receiver.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { freePort } from "../support/free_port.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { recordsOf, resourceOf, samplesOf, spansOf } from "../support/otlp.ts";
import { testUnless } from "../support/program.ts";
import { makeStoreObject } from "../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 2_000_000 });
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const ANSWER_MAX_MS = 1_500;
const STOP_MAX_MS = 5_000;

const ENVIRONMENT = {
  OTEL_SERVICE_NAME: "larder-of-a-test",
  OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=here,team=a%20b",
};

function start(upstream: FakeUpstream, otelUrl: string, environment = {}): Promise<LarderProcess> {
  return startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "otel-enabled": "true",
    "otel-grpc-url": otelUrl,
    "prometheus-enabled": "true",
  }, { ...ENVIRONMENT, ...environment });
}

/** A cold NAR, whose request is part of a trace of the client's. */
async function pull(larder: LarderProcess): Promise<void> {
  const narinfo = await (await fetch(`${larder.url}/${object.storePathHash}.narinfo`)).text();
  const path = /^URL: (.*)$/m.exec(narinfo)?.[1];
  const traceparent = `00-${TRACE_ID}-b7ad6b7169203331-01`;
  const headers = { traceparent, "x-request-id": "build-7" };
  await (await fetch(`${larder.url}/${path}`, { headers })).bytes();
}

async function stop(larder: LarderProcess): Promise<number> {
  const startedAtMs = performance.now();
  larder.kill("SIGTERM");
  assert.equal((await larder.ended).code, 0);
  return performance.now() - startedAtMs;
}

testUnless(
  OTLP_RECEIVER_UNAVAILABLE,
  "otel: traces, metrics and logs arrive at a gRPC receiver, and belong together",
  async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using receiver = await OtlpReceiver.start();
    await using larder = await start(upstream, receiver.url);
    await pull(larder);
    const kept = await larder.logged("nar cached successfully");
    const scraped = await (await fetch(`${larder.url}/metrics`)).text();
    await stop(larder);

    const spans = spansOf(receiver.received("traces"));
    const ours = spans.filter(({ traceId }) => traceId === TRACE_ID);
    const server = ours.find(({ name }) => name === "GET /nar/{name}");
    assert.equal(server?.parentSpanId, "b7ad6b7169203331");
    assert.equal(server.facts["larder.request_id"], "build-7");
    assert.equal(server.facts["larder.x_cache"], "MISS");
    const names = new Set(ours.map(({ name }) => name));
    for (
      const name of [
        ...["findNar", "sourcesOf", "download nar", "wait for space", "wait for first bytes"],
        ...["GET nar", "verify nar", "publish nar file", "apply"],
      ]
    ) assert.ok(names.has(name), `${name} is among ${[...names]}`);
    const ids = new Set(ours.map(({ spanId }) => spanId));
    assert.ok(ours.every((span) => span === server || ids.has(span.parentSpanId)));

    const record = recordsOf(receiver.received("logs"))
      .find(({ msg }) => msg === "nar cached successfully");
    assert.deepEqual([record.traceId, record.spanId], [kept["trace_id"], kept["span_id"]]);
    assert.equal(record.traceId, TRACE_ID);

    for (const signal of ["traces", "metrics", "logs"] as const) {
      const resource = resourceOf(receiver.received(signal)[0]);
      assert.equal(resource["service.name"], "larder-of-a-test");
      assert.equal(resource["team"], "a b");
    }
    compareSamples(scraped, samplesOf(receiver.received("metrics").at(-1)));
  },
);

/** The receiver got each series of the scrape, with its value where nothing went on after it. */
function compareSamples(scraped: string, samples: ReadonlyMap<string, number>): void {
  const series = scraped.split("\n").filter((line) => /^(larder|http|process)_/.test(line))
    .filter((line) => !/_bucket\{/.test(line))
    .map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" "))]);
  assert.ok(series.length > 100);
  for (const [name = "", value] of series) {
    const sent = samples.get(name);
    assert.ok(sent !== undefined, `${name} was sent`);
    // The scrape itself, and what the process used since, come on top.
    if (!/^process_|route="\/metrics"|active_requests/.test(name)) {
      assert.equal(sent, Number(value), name);
    }
  }
}

testUnless(OTLP_RECEIVER_UNAVAILABLE, "otel: a frozen receiver costs nobody anything", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using receiver = await OtlpReceiver.start();
  await using larder = await start(upstream, receiver.url);
  receiver.kill("SIGSTOP");
  await pull(larder);
  const slowestMs = await load(larder);
  assert.ok(slowestMs < ANSWER_MAX_MS, `an answer took ${slowestMs} ms`);
  const tookMs = await stop(larder);
  assert.ok(tookMs < STOP_MAX_MS, `stopping took ${tookMs} ms`);
});

Deno.test("otel: an absent receiver is said once, counted, and costs nobody anything", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const url = `http://127.0.0.1:${freePort()}`;
  await using larder = await start(upstream, url, { OTEL_METRIC_EXPORT_INTERVAL: "100" });
  await pull(larder);
  const slowestMs = await load(larder);
  assert.ok(slowestMs < ANSWER_MAX_MS, `an answer took ${slowestMs} ms`);
  for (const signal of ["traces", "metrics", "logs"]) {
    await larder.logged("telemetry dropped", (line) => line["signal"] === signal);
  }
  const scraped = await (await fetch(`${larder.url}/metrics`)).text();
  const dropped = /^larder_telemetry_dropped_total\{signal="traces"\} (\d+)$/m.exec(scraped);
  assert.ok(Number(dropped?.[1]) > 0);
  await stop(larder);
  assert.equal(larder.lines.filter(({ msg }) => msg === "telemetry dropped").length, 3);
});

/** More requests than the queues hold records; how long the slowest one took, in ms. */
async function load(larder: LarderProcess): Promise<number> {
  let slowestMs = 0;
  for (let round = 0; round < 150; round++) {
    await Promise.all(Array.from({ length: 40 }, async () => {
      const startedAtMs = performance.now();
      await (await fetch(`${larder.url}/${object.storePathHash}.narinfo`)).text();
      slowestMs = Math.max(slowestMs, performance.now() - startedAtMs);
    }));
  }
  return slowestMs;
}
