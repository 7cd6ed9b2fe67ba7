import assert from "node:assert/strict";
import { ROOT_CONTEXT, SamplingDecision } from "@opentelemetry/api";
import { TraceIdRatioBasedSampler } from "@opentelemetry/sdk-trace";
import { RecordedSpans } from "../../support/recorded_spans.ts";

const REQUESTS_COUNT = 40_000;

/** Ids of the traces that so many requests begin, of which `ratio` are sampled. */
function traceIdsOf(ratio: number): readonly string[] {
  const spans = new RecordedSpans({
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: String(ratio),
  });
  for (let count = 0; count < REQUESTS_COUNT; count++) {
    spans.tracer.request("GET", "/", new Headers())?.end();
  }
  return spans.list.map(({ span }) => span.spanContext().traceId);
}

/** Whether a service of this ratio would sample the trace too. */
const SAMPLERS: Readonly<Record<string, (ratio: number) => (traceId: string) => boolean>> = {
  "JavaScript": (ratio) => {
    const sampler = new TraceIdRatioBasedSampler(ratio);
    return (traceId) =>
      sampler.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
  },
  "Go": (ratio) => (traceId) =>
    BigInt(`0x${traceId.slice(16)}`) >> 1n < BigInt(Math.floor(ratio * 2 ** 63)),
  "Python": (ratio) => (traceId) =>
    BigInt(`0x${traceId.slice(16)}`) < BigInt(Math.round(ratio * 2 ** 64)),
};

for (const [language, samplerOf] of Object.entries(SAMPLERS)) {
  Deno.test(`root trace ids: services in ${language} sample the same traces`, () => {
    for (const ratio of [0.001, 0.25, 0.999, 1]) {
      const ids = traceIdsOf(ratio);
      assert.ok(Math.abs(ids.length / REQUESTS_COUNT - ratio) < 0.02);
      assert.ok(ids.every(samplerOf(ratio)), `${ratio}`);
      // One that samples half as many takes half of them.
      if (ratio < 0.01) continue;
      const halfAsMany = ids.filter(samplerOf(ratio / 2)).length;
      assert.ok(Math.abs(halfAsMany / ids.length - 0.5) < 0.03, `${ratio / 2}`);
    }
  });
}

Deno.test("root trace ids: they are valid, all different, and each digit is of any value", () => {
  const ids = traceIdsOf(1);
  assert.equal(new Set(ids).size, REQUESTS_COUNT);
  for (const id of ids) assert.match(id, /^(?!0{32})[0-9a-f]{32}$/);
  for (let at = 0; at < 32; at++) {
    assert.equal(new Set(ids.map((id) => id[at])).size, 16, `digit ${at}`);
  }
});
