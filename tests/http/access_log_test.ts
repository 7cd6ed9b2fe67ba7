import assert from "node:assert/strict";
import { createLogger } from "../../src/telemetry/logger.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache, type TestLogLine } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "big-1.0", size: 2_000_000 });
const HASH = object.storePathHash;

function accessLines({ log }: TestCache): readonly TestLogLine[] {
  return log.filter(({ msg }) => msg === "request");
}

Deno.test("access log: a line a request; NARs and changes at info, others at debug", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await (await cache.get(await cache.narPath(HASH), { "x-request-id": "build-1" })).bytes();
  await cache.request("POST", `/pin/${HASH}.narinfo`);
  await cache.request("DELETE", `/pin/${HASH}.narinfo`);
  await cache.head(`/${HASH}.narinfo`);
  await cache.get("/healthz");
  await cache.get(`/nothing?token=s3cret`);
  const lines = accessLines(cache).map(({ level, method, route, status }) =>
    `${level} ${method} ${route} ${status}`
  );
  assert.deepEqual(lines, [
    "debug GET /{hash}.narinfo 200",
    "info GET /nar/{name} 200",
    "info POST /pin/{hash}.narinfo 200",
    "info DELETE /pin/{hash}.narinfo 200",
    "debug HEAD /{hash}.narinfo 200",
    "debug GET /healthz 200",
    "debug GET unmatched 404",
  ]);
  assert.ok(!JSON.stringify(cache.log).includes("s3cret"));
});

Deno.test("access log: a NAR's line has the client, the path and the X-Cache result", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const path = await cache.narPath(HASH);
  const headers = { "x-request-id": "build-1" };
  const { length } = await (await fetch(server.url + path, { headers })).bytes();
  const nar = () => accessLines(cache).find(({ route }) => route === "/nar/{name}");
  await eventually("the line is written", () => nar() !== undefined);
  const found = nar();
  assert.ok(found);
  const { duration_ms, ts: _, ...line } = found;
  assert.ok(Number.isInteger(duration_ms));
  assert.deepEqual(line, {
    level: "info",
    msg: "request",
    method: "GET",
    route: "/nar/{name}",
    path,
    nar: path.slice("/nar/".length),
    name: "big-1.0",
    status: 200,
    bytes: length,
    outcome: "complete",
    x_cache: "MISS",
    client: "127.0.0.1",
    request_id: "build-1",
  });
});

Deno.test("access log: a hit has one line when it was sent; 304 and 416 send none", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const path = await cache.narPath(HASH);
  const { length } = await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  const before = cache.log.length;
  const asked: readonly (readonly [string, HeadersInit])[] = [
    ["GET", {}],
    ["GET", { range: "bytes=0-999" }],
    ["HEAD", {}],
    ["GET", { "if-none-match": "*" }],
    ["GET", { range: `bytes=${length}-` }],
  ];
  for (const [method, headers] of asked) {
    await (await fetch(server.url + path, { method, headers })).bytes();
  }
  const lines = () => cache.log.slice(before).filter(({ level }) => level === "info");
  await eventually("all are over", () => lines().length === asked.length);
  const told = lines().map(({ msg, method, status, bytes, outcome, name, client }) => {
    assert.deepEqual([name, client], ["big-1.0", "127.0.0.1"]);
    assert.equal(outcome, "complete");
    return [msg, method, status, bytes];
  });
  assert.deepEqual(told, [
    ["serving nar from cache", "GET", 200, length],
    ["serving nar from cache", "GET", 206, 1_000],
    ["request", "HEAD", 200, 0],
    ["request", "GET", 304, 0],
    ["request", "GET", 416, "Range Not Satisfiable\n".length],
  ]);
});

Deno.test("access log: a NAR that is cut as larder stops does not blame its client", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, server, path } = scene;
  gate.release(100_000);
  await using connection = await RawConnection.open(server.port);
  await connection.send(requestText("GET", path));
  assert.equal((await connection.answer()).status, 200);
  await server.server[Symbol.asyncDispose]();
  const cut = () => accessLines(cache).find(({ route }) => route === "/nar/{name}");
  await eventually("larder has cut it", () => cut() !== undefined);
  assert.equal(cut()?.["outcome"], "stopped");
  const labels = 'method="GET",route="/nar/{name}",status="200",outcome="aborted"';
  const metrics = await (await cache.get("/metrics")).text();
  assert.ok(metrics.includes(`http_server_requests_total{${labels}} 1\n`), "few labels");
  gate.open();
  await cache.downloadsOver();
});

Deno.test("access log: a client without a readable request has a line too", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  await rawRequest(server.port, "hello\r\n\r\n");
  const refused = () => accessLines(cache).find(({ reason }) => reason !== undefined);
  await eventually("the line is written", () => refused() !== undefined);
  assert.equal(refused()?.["client"], "127.0.0.1");
});

Deno.test("access log: a narinfo's line costs nothing where it is not written", async () => {
  const lines: string[] = [];
  const log = createLogger("info", { write: (line) => void lines.push(line) });
  await using cache = await TestCache.open({ upstreams: [], log });
  await cache.get(`/${HASH}.narinfo`);
  assert.deepEqual(lines, []);
});
