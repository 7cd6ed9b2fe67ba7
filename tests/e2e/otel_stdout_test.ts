import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { recordsOf, resourceOf, spansOf } from "../support/otlp.ts";
import { makeStoreObject } from "../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0" });

/** The lines of larder with OpenTelemetry on standard output, each one parsed. */
async function linesWith(
  env: Readonly<Record<string, string>>,
  traceparent?: string,
  level = "info",
) {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "otel-enabled": "true",
    "log-level": level,
  }, env);
  const headers = new Headers(traceparent === undefined ? {} : { traceparent });
  const url = `${larder.url}/${object.storePathHash}.narinfo`;
  const answer = await fetch(url, { headers });
  await answer.bytes();
  assert.equal(answer.status, 200);
  larder.kill("SIGTERM");
  await larder.ended;
  return larder.lines;
}

Deno.test("otel: without a receiver each signal is JSON lines among the log", async () => {
  const lines = await linesWith({});
  assert.ok(lines.some(({ msg }) => msg === "server shutdown"));
  const spans = spansOf(lines);
  assert.ok(spans.some(({ name }) => name === "GET /{hash}.narinfo"));
  assert.ok(spans.some(({ name }) => name === "SELECT narinfo"));
  assert.ok(recordsOf(lines).some(({ msg }) => msg === "server started"));
  assert.ok(lines.some((line) => "resourceMetrics" in line));
  const recordsPerLine = lines.map((line) => spansOf([line]).length + recordsOf([line]).length);
  assert.equal(Math.max(...recordsPerLine), 1);
  const longest = Math.max(...lines.map((line) => JSON.stringify(line).length));
  assert.ok(longest < 48 * 1_024, `${longest} characters`);
});

Deno.test("otel: the sampler of the environment selects the traced requests", async () => {
  const none = { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" };
  assert.deepEqual(spansOf(await linesWith(none)), []);
  const ids = `${"1".repeat(32)}-${"2".repeat(16)}`;
  assert.ok(spansOf(await linesWith(none, `00-${ids}-01`)).length > 0);
  assert.deepEqual(spansOf(await linesWith({}, `00-${ids}-00`)), []);
});

Deno.test("otel: where the caller is not sampled lines still have its trace's id", async () => {
  const lines = await linesWith({}, `00-${"1".repeat(32)}-${"2".repeat(16)}-00`, "debug");
  const request = lines.find(({ msg, route }) => msg === "request" && route === "/{hash}.narinfo");
  assert.equal(request?.["trace_id"], "1".repeat(32));
  assert.match(String(request?.["span_id"]), /^[0-9a-f]{16}$/);
  assert.deepEqual(spansOf(lines), []);
});

Deno.test("otel: a later version of traceparent is read, nonsense is not", async () => {
  const [traceId, spanId] = ["1".repeat(32), "2".repeat(16)];
  const traceIdOf = async (traceparent: string) =>
    spansOf(await linesWith({}, traceparent)).find(({ name }) => name.startsWith("GET"))?.traceId;
  assert.equal(await traceIdOf(`cc-${traceId}-${spanId}-01-more`), traceId);
  for (const wrong of [`00-${traceId}-${spanId}-01-more`, `ff-${traceId}-${spanId}-01`]) {
    assert.notEqual(await traceIdOf(wrong), traceId);
  }
});

Deno.test("otel: an unknown sampler is logged, and everything is traced", async () => {
  const lines = await linesWith({ OTEL_TRACES_SAMPLER: "dice" });
  const complaint = lines.find(({ msg }) => msg === "invalid environment variable");
  assert.equal(complaint?.["variable"], "OTEL_TRACES_SAMPLER");
  assert.ok(spansOf(lines).length > 0);
});

Deno.test("otel: variables that cannot be read are said once each, and ignored", async () => {
  const lines = await linesWith({
    OTEL_RESOURCE_ATTRIBUTES: "team=a,abc",
    OTEL_METRIC_EXPORT_INTERVAL: "soon",
  });
  const said = lines.filter(({ msg }) => msg === "invalid environment variable");
  assert.deepEqual(said.map(({ variable }) => variable).sort(), [
    "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_RESOURCE_ATTRIBUTES",
  ]);
  const request = lines.find((line) => "resourceSpans" in line);
  assert.equal(resourceOf(request)["team"], undefined);
});

Deno.test("otel: OTEL_SDK_DISABLED turns it off, and larder says so", async () => {
  const lines = await linesWith({ OTEL_SDK_DISABLED: "true" });
  assert.ok(lines.every((line) => "msg" in line));
  const said = lines.find(({ msg }) => msg === "opentelemetry disabled");
  assert.equal(said?.["reason"], "OTEL_SDK_DISABLED=true");
});
