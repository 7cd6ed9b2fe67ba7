import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { spansOf, type TestSpan } from "../support/otlp.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { testUnless } from "../support/program.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";

const missing = S3_UNAVAILABLE || postgresMissing || redisMissing;
const s3 = missing === "" ? await S3Server.start() : undefined;
const postgres = missing === "" ? PostgresServer.start() : undefined;

/** Not small enough for memory. */
const object = makeStoreObject({ name: "traced", size: 1_000_000 });
/** Its row is in no memory. */
const UNKNOWN_PATH = `/nar/${"0".repeat(52)}.nar.xz`;
const TRACES = {
  ...{ miss: "1".repeat(32), hit: "2".repeat(32) },
  ...{ redirect: "3".repeat(32), unknown: "5".repeat(32) },
} as const;

testUnless(
  missing,
  "otel: locks, queries and S3 operations of real servers are spans",
  async () => {
    if (s3 === undefined || postgres === undefined) return;
    await using redis = await RedisServer.open();
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    const place = s3.bucket();
    await using larder = await startLarder({
      ...s3Flags(place),
      "cache-storage-s3-redirect": "true",
      "cache-database-url": await postgres.createMigrated(),
      "cache-redis-addrs": redis.address,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "cache-prefetch": "false",
      "otel-enabled": "true",
    });
    const { narPath } = await servedNarinfo(larder.port, object.storePathHash);
    const get = async (
      traceId: string,
      { path = narPath, ...more }: { readonly path?: string; readonly range?: string } = {},
    ) => {
      const headers = { traceparent: `00-${traceId}-${"4".repeat(16)}-01`, ...more };
      const answer = await fetch(larder.url + path, { headers, redirect: "manual" });
      return { status: answer.status, bytes: await answer.bytes() };
    };
    const { bytes } = await get(TRACES.miss);
    await larder.logged("nar cached successfully");
    const part = await get(TRACES.hit, { range: `bytes=1000-${bytes.length - 1}` });
    assert.deepEqual([part.status, part.bytes], [206, bytes.subarray(1_000)]);
    assert.equal((await get(TRACES.redirect)).status, 307);
    assert.equal((await get(TRACES.unknown, { path: UNKNOWN_PATH })).status, 404);
    larder.kill("SIGTERM");
    await larder.ended;

    const spans = spansOf(larder.lines);
    const named = (trace: keyof typeof TRACES, name: string) =>
      spans.filter((span: TestSpan) => span.traceId === TRACES[trace] && span.name === name);
    const one = (trace: keyof typeof TRACES, name: string) => {
      const [span, ...more] = named(trace, name);
      const names = spans.filter(({ traceId }) => traceId === TRACES[trace]).map(({ name }) =>
        name
      );
      assert.ok(span !== undefined && more.length === 0, `one ${name} in ${names}`);
      return span;
    };
    const lock = one("miss", "acquire lock");
    assert.equal(lock.facts["larder.lock.type"], "download:nar");
    const put = one("miss", "S3/PutObject");
    assert.equal(put.parentSpanId, one("miss", "publish nar file").spanId);
    assert.equal(put.facts["http.response.status_code"], 200);
    const [query] = named("unknown", "SELECT nar");
    assert.equal(query?.facts["db.system.name"], "postgresql");
    assert.equal(query.parentSpanId, one("unknown", "GET /nar/{name}").spanId);
    assert.equal(one("hit", "S3/HeadObject").parentSpanId, one("hit", "open nar file").spanId);
    const body = one("hit", "S3/GetObject");
    assert.equal(body.parentSpanId, one("hit", "GET /nar/{name}").spanId);
    assert.equal(body.facts["rpc.service"], "S3");
    assert.equal(body.facts["aws.s3.bucket"], place.bucket);
    assert.equal(body.facts["http.response.body.size"], bytes.length - 1_000);
    const presigned = one("redirect", "presign S3/GetObject");
    assert.equal(presigned.parentSpanId, one("redirect", "GET /nar/{name}").spanId);
  },
);
