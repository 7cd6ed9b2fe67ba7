import assert from "node:assert/strict";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { TestCache } from "../support/test_cache.ts";

/** The span of one request, beside which nothing is traced. */
async function spanOf(method: string, path: string) {
  const spans = new RecordedSpans();
  await using cache = await TestCache.open({ upstreams: [], tracer: spans.tracer });
  await cache.request(method, path);
  const [span, ...more] = spans.list;
  assert.ok(span !== undefined && more.length === 0);
  return span;
}

const NAMES: readonly (readonly [method: string, path: string, name: string])[] = [
  ["GET", "/healthz", "GET /healthz"],
  ["PATCH", "/healthz", "PATCH /healthz"],
  ["FETCH", "/healthz", "HTTP /healthz"],
  ["GET", "/nowhere", "GET"],
  ["FETCH", "/nowhere", "HTTP"],
];

for (const [method, path, name] of NAMES) {
  Deno.test(`server span: the one of ${method} ${path} is called ${name}`, async () => {
    const { name: found, kind, facts } = await spanOf(method, path);
    assert.deepEqual([found, kind], [name, "server"]);
    assert.equal(facts["http.request.method"], method === "FETCH" ? "_OTHER" : method);
    assert.equal(facts["http.request.method_original"], method === "FETCH" ? "FETCH" : undefined);
  });
}

Deno.test("server span: clients cannot make it large by a long method", async () => {
  const { name, facts } = await spanOf("X".repeat(4_000), "/nowhere");
  assert.equal(name, "HTTP");
  assert.ok(String(facts["http.request.method_original"]).length < 100);
});
