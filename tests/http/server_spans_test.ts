import assert from "node:assert/strict";
import { rawRequest } from "../support/raw_http.ts";
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

const HOSTS: Readonly<Record<string, readonly unknown[]>> = {
  "cache.example:8501": ["cache.example", 8501],
  "cache.example": ["cache.example", 80],
  "[fd00::1]:8501": ["fd00::1", 8501],
  "127.0.0.1": ["127.0.0.1", 80],
  "cache.example:x": [undefined, undefined],
};

for (const [host, [address, port]] of Object.entries(HOSTS)) {
  Deno.test(`server span: for the host ${host} it names the server ${address}`, async () => {
    const spans = new RecordedSpans();
    await using cache = await TestCache.open({ upstreams: [], tracer: spans.tracer });
    await cache.get("/healthz", { host });
    const { facts } = spans.named("GET /healthz");
    assert.deepEqual([facts["server.address"], facts["server.port"]], [address, port]);
  });
}

Deno.test("server span: it has the client's address, scheme, version and user agent", async () => {
  const spans = new RecordedSpans();
  await using cache = await TestCache.open({ upstreams: [], tracer: spans.tracer, usesTls: true });
  await using server = cache.listen();
  const old =
    "HEAD /healthz?token=s3cret HTTP/1.0\r\nHost: a.example\r\nUser-Agent: Nix/2.34\r\n\r\n";
  await rawRequest(server.port, old);
  const { facts, error } = spans.named("HEAD /healthz");
  assert.equal(error, undefined);
  const { "larder.request_id": _, ...rest } = facts;
  assert.deepEqual(rest, {
    "client.address": "127.0.0.1",
    "http.request.method": "HEAD",
    "url.path": "/healthz",
    "url.scheme": "https",
    "server.address": "a.example",
    "server.port": 443,
    "user_agent.original": "Nix/2.34",
    "network.protocol.version": "1.0",
    "http.response.status_code": 200,
    "http.response.body.size": 0,
    "http.route": "/healthz",
    "larder.outcome": "complete",
  });
});

Deno.test("server span: a failure here is an error, an absence is none", async () => {
  const spans = new RecordedSpans();
  await using cache = await TestCache.open({
    upstreams: [],
    tracer: spans.tracer,
    problems: {
      list: () => {
        throw new Error("boom");
      },
    },
  });
  assert.equal((await cache.get("/stats")).status, 500);
  await cache.get("/nowhere");
  const broken = spans.named("GET /stats");
  assert.deepEqual([broken.facts["error.type"], broken.error], ["500", ""]);
  const absent = spans.named("GET");
  assert.deepEqual([absent.facts["error.type"], absent.error], [undefined, undefined]);
});
