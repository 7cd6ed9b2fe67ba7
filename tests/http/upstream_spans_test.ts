import assert from "node:assert/strict";
import { upstreamTraceOf } from "../../src/upstream/http/upstream_fetch.ts";
import {
  type FakeUpstream,
  fakeUpstream,
  type FakeUpstreamOptions,
} from "../support/fake_upstream.ts";
import { freePort } from "../support/free_port.ts";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 20_000 });
const NARINFO = `${object.storePathHash}.narinfo`;

function openTraced(
  upstreams: TestCacheOptions["upstreams"],
  spans: RecordedSpans,
  options: Partial<TestCacheOptions> = {},
): Promise<TestCache> {
  const { tracer } = spans;
  const upstreamTrace = upstreamTraceOf(tracer, false);
  return TestCache.open({ upstreams, tracer, upstreamTrace, ...options });
}

/** The span of a request for a narinfo to an upstream that answers like this. */
async function narinfoSpan(options: FakeUpstreamOptions) {
  await using upstream = await fakeUpstream(options);
  const spans = new RecordedSpans();
  await using cache = await openTraced([upstream], spans, { authorization: "Basic s3cret" });
  await cache.get(`/${NARINFO}`);
  return { ...spans.named("GET narinfo"), upstream, spans };
}

function serverFacts(upstream: FakeUpstream) {
  return { "server.address": "127.0.0.1", "server.port": Number(new URL(upstream.url).port) };
}

Deno.test("upstream span: a narinfo's names upstream, path and status", async () => {
  const found = await narinfoSpan({ objects: [object], stored: true });
  assert.deepEqual([found.kind, found.error], ["client", undefined]);
  assert.deepEqual(found.facts, {
    "http.request.method": "GET",
    "http.response.status_code": 200,
    "url.full": `${found.upstream.url}/${NARINFO}`,
    ...serverFacts(found.upstream),
    "larder.upstream.result": "found",
  });
  assert.ok(!JSON.stringify(found.spans.list.map(({ facts }) => facts)).includes("s3cret"));
});

interface Case {
  readonly answer: () => Response;
  readonly status: number;
  /** `undefined`: that is no error. */
  readonly error?: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "an absence is no error": { answer: () => new Response("", { status: 404 }), status: 404 },
  "a bad status is the error": {
    answer: () => new Response("", { status: 500 }),
    status: 500,
    error: "500",
  },
  "nonsense is an error of its own": {
    answer: () => new Response("nonsense"),
    status: 200,
    error: "garbage",
  },
};

for (const [what, { answer, status, error }] of Object.entries(CASES)) {
  Deno.test(`upstream span: ${what}`, async () => {
    const onRequest = ({ path }: { readonly path: string }) =>
      path.endsWith(NARINFO) ? answer() : undefined;
    const found = await narinfoSpan({ onRequest });
    assert.equal(found.facts["http.response.status_code"], status);
    assert.equal(found.facts["error.type"], error);
    assert.equal(found.error !== undefined, error !== undefined);
  });
}

Deno.test("upstream span: an unreachable upstream is an error without a status", async () => {
  const spans = new RecordedSpans();
  await using cache = await openTraced([`http://127.0.0.1:${freePort()}`], spans);
  await cache.get(`/${NARINFO}`);
  const { facts, error } = spans.named("GET narinfo");
  assert.deepEqual([facts["error.type"], error], ["unreachable", ""]);
  assert.ok(!("http.response.status_code" in facts));
});

Deno.test("upstream span: a NAR that the Worker fetches has a status, too", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const spans = new RecordedSpans();
  await using cache = await openTraced([upstream], spans);
  await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  await cache.downloadsOver();
  const { kind, facts } = spans.named("GET nar");
  assert.deepEqual([kind, facts["http.response.status_code"]], ["client", 200]);
});

Deno.test("upstream span: a NAR's size, and a passed-through NAR, have one, too", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const spans = new RecordedSpans();
  await using cache = await openTraced([upstream], spans, { limitBytes: 1_000 });
  const path = await cache.narPath(object.storePathHash);
  await cache.head(path);
  await (await cache.get(path)).bytes();
  for (const method of ["HEAD", "GET"]) {
    const { kind, facts } = spans.named(`${method} nar`);
    assert.equal(kind, "client");
    assert.equal(facts["http.request.method"], method);
    assert.equal(facts["http.response.status_code"], 200);
    assert.equal(facts["server.port"], serverFacts(upstream)["server.port"]);
  }
});

Deno.test("upstream span: a document's has a status, too", async () => {
  const path = `/log/${object.storePathHash}-thing-1.0.drv`;
  await using upstream = await fakeUpstream({ documents: { [path]: "a log" } });
  const spans = new RecordedSpans();
  await using cache = await openTraced([upstream], spans);
  await (await cache.get(path)).text();
  const { facts, error } = spans.named("GET document");
  assert.deepEqual([facts["http.response.status_code"], error], [200, undefined]);
});
