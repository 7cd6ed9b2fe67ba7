import assert from "node:assert/strict";
import { beginSpan } from "../../../src/telemetry/tracer.ts";
import { eventually } from "../../support/eventually.ts";
import { RecordedSpans } from "../../support/recorded_spans.ts";

Deno.test("span: one that is begun lasts until it is ended, and others can be below", async () => {
  const spans = new RecordedSpans();
  const { tracer } = spans;
  const request = tracer.request("GET", "/", new Headers());
  const open = request?.run(() => beginSpan(tracer, { name: "outer" }));
  assert.ok(open);
  open.set({ "larder.nar": "a" });
  // Not in the request's own turn: `run` alone names the parent span.
  await open.run(() => tracer.span({ name: "inner" }, () => Promise.resolve()));
  assert.deepEqual(spans.list.map(({ name }) => name), ["inner"]);
  open.fail("reason");
  open.end();
  await eventually("it is over", () => spans.list.length === 2);
  const [inner, outer] = [spans.named("inner"), spans.named("outer")];
  assert.equal(inner.span.parentSpanContext?.spanId, outer.span.spanContext().spanId);
  assert.deepEqual(outer.facts, { "larder.nar": "a", "error.type": "reason" });
});
