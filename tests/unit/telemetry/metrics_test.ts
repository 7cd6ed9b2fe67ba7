import assert from "node:assert/strict";
import { Metrics } from "../../../src/telemetry/metrics.ts";

Deno.test("Metrics: every series is there with 0 from the start", async () => {
  const text = await new Metrics().text();
  assert.match(text, /^larder_nar_served_total 0$/m);
  assert.match(text, /^larder_cache_requests_total\{kind="narinfo",result="negative"\} 0$/m);
  assert.match(text, /^larder_verification_failures_total\{reason="nar_hash"\} 0$/m);
});

Deno.test("Metrics: what is counted is in its series, and in no other", async () => {
  const metrics = new Metrics();
  const hits = metrics.series("cache_requests_total", { kind: "nar", result: "hit" });
  hits.count();
  hits.count();
  metrics.count("verification_failures_total", { reason: "file_hash" });

  for (const _ of ["first scrape", "second scrape"]) {
    const text = await metrics.text();
    assert.match(text, /^larder_cache_requests_total\{kind="nar",result="hit"\} 2$/m);
    assert.match(text, /^larder_cache_requests_total\{kind="nar",result="miss"\} 0$/m);
    assert.match(text, /^larder_verification_failures_total\{reason="file_hash"\} 1$/m);
  }
});
