import assert from "node:assert/strict";
import { createLogger } from "../../src/telemetry/logger.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
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

Deno.test("access log: a NAR's line has its bytes, duration, X-Cache and request id", async () => {
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
    status: 200,
    bytes: length,
    outcome: "complete",
    x_cache: "MISS",
    request_id: "build-1",
  });
});

Deno.test("access log: a narinfo's line costs nothing where it is not written", async () => {
  const lines: string[] = [];
  const log = createLogger("info", { write: (line) => void lines.push(line) });
  await using cache = await TestCache.open({ upstreams: [], log });
  await cache.get(`/${HASH}.narinfo`);
  assert.deepEqual(lines, []);
});
