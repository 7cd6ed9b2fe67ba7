import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { SYSTEM_RUNTIME } from "../../src/runtime/runtime.ts";
import { upstreamTraceOf } from "../../src/upstream/http/upstream_fetch.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { heldUntil } from "../support/faults.ts";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { WatchedWorkers } from "../support/watched_workers.ts";

/** The narinfo after these starts the Worker. */
const OWN = 16;

/** After a lost Worker. */
const OWN_AFTER_LOSS = 32;

const HANGING = new URL("../support/hanging_worker.ts", import.meta.url);

const objects = Array.from({ length: 100 }, (_, seed) => makeStoreObject({ name: "thing", seed }));
const before = objects.slice(0, OWN + 2);
const later = objects.slice(OWN + 2);
const crowd = later.slice(0, 20);
/** Two in one turn are a crowd. */
const pair = later.slice(0, 2);

/** Requests so many narinfos that the Worker is up. */
async function startWorker(cache: TestCache, workers: WatchedWorkers): Promise<void> {
  await textsOf(cache, before);
  await workers.up();
}

async function textsOf(cache: TestCache, wanted: readonly StoreObject[]) {
  return await Promise.all(wanted.map((object) => cache.narinfo(object.storePathHash)));
}

async function statusesOf(cache: TestCache, wanted: readonly StoreObject[]) {
  const answers = await Promise.all(wanted.map((object) => cache.get(pathOf(object))));
  return answers.map(({ status }) => status);
}

function pathOf({ storePathHash }: StoreObject): string {
  return `/${storePathHash}.narinfo`;
}

function counts(upstream: FakeUpstream, wanted: readonly StoreObject[]): readonly number[] {
  return wanted.map((object) => upstream.count(pathOf(object)));
}

Deno.test("narinfo Worker: it takes over, and its texts are the same", async () => {
  using workers = new WatchedWorkers();
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ runtime: SYSTEM_RUNTIME, upstreams: [upstream] });
  await textsOf(cache, before.slice(0, OWN));
  assert.equal(workers.count, 0);
  await startWorker(cache, workers);
  assert.equal(workers.readings, 0);
  const texts = await textsOf(cache, crowd);
  assert.equal(workers.count, 1);
  assert.equal(workers.readings, crowd.length);

  const { secretKey } = cache;
  await using other = await TestCache.open({
    runtime: SYSTEM_RUNTIME,
    upstreams: [upstream],
    secretKey,
  });
  for (const [at, object] of crowd.slice(0, OWN).entries()) {
    assert.equal(await other.narinfo(object.storePathHash), texts[at]);
  }
  assert.equal(workers.readings, crowd.length);
});

Deno.test("narinfo Worker: one that crashes costs no client its answer", async () => {
  using workers = new WatchedWorkers();
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ runtime: SYSTEM_RUNTIME, upstreams: [upstream] });
  await startWorker(cache, workers);
  const held = Promise.withResolvers<void>();
  upstream.breakNarinfo(heldUntil(held.promise));
  const texts = textsOf(cache, crowd);
  await Promise.all(crowd.map((object) => upstream.requested(pathOf(object))));

  workers.crash();

  // This thread asks once more.
  await Promise.all(crowd.map((object) => upstream.requested(pathOf(object), 2)));
  held.resolve();
  assert.equal((await texts).length, crowd.length);
  const [lost, ...more] = cache.logged("warn");
  assert.deepEqual([lost?.msg, lost?.["error"], more], ["narinfo worker lost", "it crashed", []]);
  assert.equal(workers.count, 1);
  upstream.mend();
  await textsOf(cache, later.slice(20, 20 + OWN_AFTER_LOSS + 1));
  assert.equal(workers.count, 2);
});

Deno.test("narinfo Worker: one that hangs holds no client", async () => {
  using workers = new WatchedWorkers(HANGING);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({
    runtime: SYSTEM_RUNTIME,
    upstreams: [upstream],
    timeoutMs: 10_000,
  });
  await startWorker(cache, workers);

  assert.equal((await textsOf(cache, crowd)).length, crowd.length);

  // Two silences, and the time for an answer.
  assert.deepEqual(counts(upstream, crowd), crowd.map(() => 1));
  assert.equal(cache.logged("warn")[0]?.["error"], "it hangs");
});

Deno.test("narinfo Worker: one that hangs does not lengthen a time limit", async () => {
  using workers = new WatchedWorkers(HANGING);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({
    runtime: SYSTEM_RUNTIME,
    upstreams: [upstream],
    timeoutMs: 300,
  });
  await startWorker(cache, workers);
  assert.deepEqual(await statusesOf(cache, pair), [404, 404]);
});

Deno.test("narinfo Worker: a late upstream is a timeout, and no standstill", async () => {
  using workers = new WatchedWorkers();
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({
    runtime: SYSTEM_RUNTIME,
    upstreams: [upstream],
    timeoutMs: 2_500,
  });
  await startWorker(cache, workers);
  const never = Promise.withResolvers<void>();
  upstream.breakNarinfo(heldUntil(never.promise));
  assert.deepEqual(await statusesOf(cache, pair), [404, 404]);
  assert.deepEqual(cache.logged("warn").map(({ msg }) => msg), ["upstream failed"]);
  assert.equal(cache.logged("warn")[0]?.["reason"], "timeout");
  assert.deepEqual(counts(upstream, pair), [1, 1]);
  never.resolve();
});

Deno.test("narinfo Worker: a stop waits for none of its narinfos", async () => {
  using workers = new WatchedWorkers();
  await using upstream = await fakeUpstream({ objects, stored: true });
  const never = Promise.withResolvers<void>();
  const cache = await TestCache.open({
    runtime: SYSTEM_RUNTIME,
    upstreams: [upstream],
    timeoutMs: 60_000,
  });
  await startWorker(cache, workers);
  upstream.breakNarinfo(heldUntil(never.promise));
  void Promise.all(crowd.map((object) => cache.get(pathOf(object))));
  await Promise.all(crowd.map((object) => upstream.requested(pathOf(object))));
  const stopped = cache[Symbol.asyncDispose]().then(() => true);
  assert.equal(await clock.within(stopped, 60_000), true);
  assert.deepEqual(cache.logged("warn"), []);
  assert.deepEqual(counts(upstream, crowd), crowd.map(() => 1));
  never.resolve();
});

Deno.test("narinfo Worker: the span of its request has headers, status and result", async () => {
  using workers = new WatchedWorkers();
  await using upstream = await fakeUpstream({ objects, stored: true });
  const spans = new RecordedSpans();
  const { tracer } = spans;
  const upstreamTrace = upstreamTraceOf(tracer, true);
  await using cache = await TestCache.open({
    runtime: SYSTEM_RUNTIME,
    upstreams: [upstream],
    tracer,
    upstreamTrace,
  });
  await startWorker(cache, workers);
  spans.list.splice(0);
  await textsOf(cache, pair);
  assert.equal(workers.readings, pair.length);
  for (const object of pair) {
    const url = `${upstream.url}${pathOf(object)}`;
    const found = spans.list.find(({ facts }) => facts["url.full"] === url);
    assert.equal(found?.facts["http.response.status_code"], 200);
    assert.equal(found?.facts["larder.upstream.result"], "found");
    const traceparent = upstream.matching(pathOf(object))[0]?.headers.get("traceparent") ?? "";
    assert.ok(traceparent.includes(found?.span.spanContext().spanId ?? "none"), traceparent);
  }
});
