import assert from "node:assert/strict";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { prometheusText } from "../../../src/telemetry/prometheus.ts";

const textOf = (metrics: Metrics) => prometheusText(metrics.snapshot());

Deno.test("Metrics: series exist with 0 from the start, or from their first use", async () => {
  const metrics = new Metrics({ domains: { upstreams: ["https://a.example"] } });
  const text = await textOf(metrics);
  assert.match(text, /^larder_nar_served_total 0$/m);
  assert.match(text, /^larder_cache_requests_total\{kind="narinfo",result="negative"\} 0$/m);
  assert.match(text, /^larder_verification_failures_total\{reason="nar_hash"\} 0$/m);
  assert.match(text, /^larder_pinned_bytes 0$/m);
  assert.match(text, /^larder_eviction_duration_seconds_bucket\{le="\+Inf"\} 0$/m);
  const labels = { upstream: "https://a.example", result: "timeout" } as const;
  const line = `larder_upstream_request_duration_seconds_count{${
    Object.entries(labels).map(([name, value]) => `${name}="${value}"`).join(",")
  }} 0\n`;
  assert.ok(!text.includes(line));
  metrics.histogram("upstream_request_duration_seconds", labels);
  assert.ok((await textOf(metrics)).includes(line));
});

Deno.test("Metrics: a count is in its series, and in no other", async () => {
  const metrics = new Metrics();
  const hits = metrics.series("cache_requests_total", { kind: "nar", result: "hit" });
  hits.count();
  hits.count();
  metrics.count("verification_failures_total", { reason: "file_hash" });
  metrics.series("evicted_bytes_total", {}).add(1_000);

  for (const _ of ["first scrape", "second scrape"]) {
    const text = await textOf(metrics);
    assert.match(text, /^larder_cache_requests_total\{kind="nar",result="hit"\} 2$/m);
    assert.match(text, /^larder_cache_requests_total\{kind="nar",result="miss"\} 0$/m);
    assert.match(text, /^larder_verification_failures_total\{reason="file_hash"\} 1$/m);
    assert.match(text, /^larder_evicted_bytes_total 1000$/m);
  }
});

Deno.test("Metrics: a gauge is read at each scrape", async () => {
  const metrics = new Metrics();
  let size = 7;
  metrics.gauge("cache_size_bytes", {}, () => size);
  assert.match(await textOf(metrics), /^larder_cache_size_bytes 7$/m);
  size = 8;
  assert.match(await textOf(metrics), /^larder_cache_size_bytes 8$/m);
});

Deno.test("Metrics: a value counts in every bucket whose bound it does not pass", async () => {
  const metrics = new Metrics();
  const durations = metrics.histogram("eviction_duration_seconds", {});
  for (const seconds of [0.05, 0.06, 1_000]) durations.observe(seconds);
  const text = await textOf(metrics);
  const buckets = [...text.matchAll(/^larder_eviction.*_bucket\{le="(.*)"\} (\d+)$/gm)];
  assert.deepEqual(buckets.map(([, le, count]) => `${le}:${count}`), [
    ...["0.01:0", "0.05:1", "0.1:2", "0.5:2", "1:2", "5:2", "10:2", "60:2", "300:2", "+Inf:3"],
  ]);
  assert.match(text, /^larder_eviction_duration_seconds_sum 1000.11$/m);
});

Deno.test("Metrics: instruments of a group not in use are fed in vain, and not shown", async () => {
  const hidden = new Metrics();
  hidden.gauge("upstream_count_total", {}, () => 2);
  assert.ok(!(await textOf(hidden)).includes("upstream_count"));
  const shown = new Metrics({ groups: ["analytics"] });
  shown.gauge("upstream_count_total", {}, () => 2);
  assert.match(await textOf(shown), /^larder_upstream_count_total 2$/m);
});

Deno.test("Metrics: a series that the table lacks cannot be counted", () => {
  const metrics = new Metrics({ domains: { upstreams: ["https://a.example"] } });
  const labels = { upstream: "https://elsewhere.example", result: "found" } as const;
  assert.throws(() => metrics.histogram("upstream_request_duration_seconds", labels));
  const result = "made up" as "found";
  const made = { upstream: "https://a.example", result };
  assert.throws(() => metrics.histogram("upstream_request_duration_seconds", made));
});
