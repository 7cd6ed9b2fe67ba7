import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { pull, SIGNALS, startOtelLarder, stop } from "../support/otel_larder.ts";
import { Collector, COLLECTOR_UNAVAILABLE } from "../support/otelcol.ts";
import { recordsOf, resourceOf, samplesOf, spansOf, type TestSpan } from "../support/otlp.ts";
import { testUnless } from "../support/program.ts";
import { makeStoreObject } from "../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 2_000_000 });
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const HOT_TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT_ID = "b7ad6b7169203331";

const ENVIRONMENT = {
  OTEL_SERVICE_NAME: "larder-of-a-test",
  OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=here,team=a%20b",
};

/** A span of the client's trace requests the NAR. */
function headers(traceId: string, requestId: string) {
  return { traceparent: `00-${traceId}-${PARENT_ID}-01`, "x-request-id": requestId };
}

testUnless(
  COLLECTOR_UNAVAILABLE,
  "otel: traces, metrics and logs arrive at a real collector, and belong together",
  async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using collector = await Collector.start();
    await using larder = await startOtelLarder(upstream, collector.url, ENVIRONMENT);
    await pull(larder, object, headers(TRACE_ID, "build-7"));
    const kept = await larder.logged("nar cached successfully");
    await pull(larder, object, headers(HOT_TRACE_ID, "build-8"));
    const scraped = await (await fetch(`${larder.url}/metrics`)).text();
    await stop(larder);
    await collector.stop();

    const spans = spansOf(collector.received("traces"));
    tellsTheStory(spans.filter(({ traceId }) => traceId === TRACE_ID));
    const hot = spans.filter(({ traceId }) => traceId === HOT_TRACE_ID);
    assert.equal(hot.at(-1)?.facts["larder.x_cache"], "HIT");
    assert.ok(!hot.some(({ name }) => name === "GET nar"));

    const record = recordsOf(collector.received("logs"))
      .find(({ msg }) => msg === "nar cached successfully");
    assert.deepEqual([record.traceId, record.spanId], [kept["trace_id"], kept["span_id"]]);
    assert.equal(record.traceId, TRACE_ID);

    for (const signal of SIGNALS) {
      const resource = resourceOf(collector.received(signal)[0]);
      assert.equal(resource["service.name"], "larder-of-a-test");
      assert.equal(resource["team"], "a b");
    }
    compareSamples(scraped, samplesOf(collector.received("metrics").at(-1)));
  },
);

/** The trace of a cold NAR: who asked, and everything that was done for it. */
function tellsTheStory(spans: readonly TestSpan[]): void {
  const server = spans.find(({ name }) => name === "GET /nar/{name}");
  assert.equal(server?.parentSpanId, PARENT_ID);
  assert.equal(server.facts["larder.request_id"], "build-7");
  assert.equal(server.facts["larder.x_cache"], "MISS");
  const names = new Set(spans.map(({ name }) => name));
  for (
    const name of [
      ...[
        "SELECT nar",
        "SELECT nar_source",
        "download nar",
        "wait for space",
        "wait for first bytes",
      ],
      ...["GET nar", "verify nar", "publish nar file", "BATCH"],
    ]
  ) assert.ok(names.has(name), `${name} is among ${[...names]}`);
  const ids = new Set(spans.map(({ spanId }) => spanId));
  assert.ok(spans.every((span) => span === server || ids.has(span.parentSpanId)));
}

/**
 * The scrape itself, heartbeats, the end of this member, and the later use of resources come on top.
 * Others use the disk, too.
 */
const GOES_ON_REGEXP =
  /^process_|route="\/metrics"|active_requests|storage_free_bytes|backend_operation|larder_members/;

/** The collector got each series of the scrape, with its value where nothing went on after it. */
function compareSamples(scraped: string, samples: ReadonlyMap<string, number>): void {
  const series = scraped.split("\n").filter((line) => /^(larder|http|process)_/.test(line))
    .filter((line) => !/_bucket\{/.test(line))
    .map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" "))]);
  assert.ok(series.length > 100);
  for (const [name = "", value] of series) {
    const sent = samples.get(name);
    assert.ok(sent !== undefined, `${name} was sent`);
    if (!GOES_ON_REGEXP.test(name)) assert.equal(sent, Number(value), name);
  }
}
