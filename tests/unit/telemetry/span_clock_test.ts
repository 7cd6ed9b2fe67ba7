import assert from "node:assert/strict";
import { createSpanClock } from "../../../src/telemetry/otel/otel_tracer.ts";
import { RecordedSpans } from "../../support/recorded_spans.ts";

Deno.test("span clock: a span begins and ends within the one that it is done for", async () => {
  const spans = new RecordedSpans();
  const headers = new Headers();
  for (let count = 0; count < 200; count++) {
    const request = spans.tracer.request("GET", "/x", headers);
    await request?.run(() => spans.tracer.span({ name: "step" }, () => Promise.resolve()));
    request?.end();
  }
  const [steps, requests] = ["step", "GET /x"].map((name) => (
    spans.list.filter((one) => one.name === name).map(({ span }) => span)
  ));
  assert.equal(steps?.length, 200);
  steps?.forEach((step, index) => {
    const request = requests?.[index];
    assert.ok(request !== undefined && nanosOf(request.startTime) <= nanosOf(step.startTime));
    assert.ok(nanosOf(step.endTime) <= nanosOf(request.endTime));
  });
});

Deno.test("span clock: it follows the machine's where that is set", () => {
  let now = 1_000_000;
  const clock = createSpanClock(() => now);
  assert.ok(Math.abs(clock.nowMs() - now) < 20);
  now += 3_600_000;
  assert.ok(Math.abs(clock.nowMs() - now) < 20);
});

function nanosOf([seconds, nanos]: readonly [number, number]): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
}
