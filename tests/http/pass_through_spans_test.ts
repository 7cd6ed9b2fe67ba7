import assert from "node:assert/strict";
import { upstreamTraceOf } from "../../src/upstream/http/upstream_fetch.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { chunked, corruptByteAt, cutAfter, firstTimes, Gate, inOrder } from "../support/faults.ts";
import { type RecordedSpan, RecordedSpans } from "../support/recorded_spans.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 4_000_000 });
const HASH = object.storePathHash;

/** Names of the spans from `span` up to its trace's first. */
function ancestry(spans: readonly RecordedSpan[], span: RecordedSpan | undefined): string {
  if (span === undefined) return "";
  const { parentSpanContext: parent } = span.span;
  const above = spans.find((one) => one.span.spanContext().spanId === parent?.spanId);
  return above === undefined ? span.name : `${span.name} < ${ancestry(spans, above)}`;
}

Deno.test("pass-through spans: each request lasts as long as its body, below ours", async () => {
  const gate = new Gate();
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(inOrder(firstTimes(1, cutAfter(1_000_000)), gate.fault));
  const { tracer, ...spans } = new RecordedSpans();
  const upstreamTrace = upstreamTraceOf(tracer, false);
  const upstreams = [upstream];
  await using cache = await TestCache.open({ upstreams, tracer, upstreamTrace, limitBytes: 1_000 });
  await using server = cache.listen();
  const path = await cache.narPath(HASH);
  gate.release(2_000_000);
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
  const bytes = answer.bytes();
  const asked = () => spans.list.filter(({ name }) => name === "GET nar");
  await eventually("the first has broken off", () => asked().length === 1);
  await gate.reached(2_000_000);
  assert.equal(asked().length, 1, "the second goes on");

  gate.open();
  assert.equal((await bytes).length, (await upstream.narFileOf(object)).bytes.length);

  const served = () => spans.list.some(({ name }) => name === "GET /nar/{name}");
  await eventually("it is over", served);
  const path1 = "GET nar < pass nar through < GET /nar/{name}";
  assert.deepEqual(asked().map((one) => ancestry(spans.list, one)), [path1, path1]);
  assert.deepEqual(asked().map(({ facts }) => facts["error.type"]), ["upstream", undefined]);
  assert.deepEqual(asked().map(({ facts }) => facts["http.response.status_code"]), [200, 206]);
});

Deno.test("pass-through spans: a NAR not kept in the end is below its request, too", async () => {
  await using upstream = await fakeUpstream({ objects: [object], dialect: "attic", stored: true });
  upstream.breakNar(chunked());
  const { tracer, ...spans } = new RecordedSpans();
  await using cache = await TestCache.open({
    upstreams: [upstream],
    tracer,
    limitBytes: 2_500_000,
  });
  await using server = cache.listen();
  const path = await cache.narPath(HASH);
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
  assert.equal((await answer.bytes()).length, (await upstream.narFileOf(object)).bytes.length);
  await cache.downloadsOver();
  const asked = () => spans.list.filter(({ name }) => name === "GET nar");
  await eventually("both are over", () => asked().length === 2);
  await eventually("it is over", () => spans.list.some(({ name }) => name === "pass nar through"));
  const above = asked().map((one) => ancestry(spans.list, one));
  assert.ok(above[1]?.startsWith("GET nar < pass nar through"), above[1]);
  const [first, second] = asked().map(({ span }) => span.spanContext().traceId);
  assert.equal(first, second, "it is one trace");
});

Deno.test("pass-through spans: a wrong file is an error, with the reason", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(corruptByteAt(1_000));
  const { tracer, ...spans } = new RecordedSpans();
  await using cache = await TestCache.open({ upstreams: [upstream], tracer, limitBytes: 1_000 });
  await assert.rejects(async () => await (await cache.get(await cache.narPath(HASH))).bytes());
  for (const name of ["pass nar through", "verify nar"]) {
    await eventually("it is over", () => spans.list.some((one) => one.name === name));
    const span = spans.list.find((one) => one.name === name);
    assert.deepEqual([span?.error, span?.facts["error.type"]], ["", "file_hash"], name);
  }
});
