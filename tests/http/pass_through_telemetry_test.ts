import assert from "node:assert/strict";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { upstreamTraceOf } from "../../src/upstream/http/upstream_fetch.ts";
import { fakeUpstream, type FakeUpstreamOptions } from "../support/fake_upstream.ts";
import {
  chunked,
  corruptByteAt,
  cutAfter,
  endAfter,
  type Fault,
  fileFault,
  firstTimes,
  followedBy,
  inOrder,
  stallAfter,
  status,
} from "../support/faults.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { scrape } from "../support/scrape.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 1_000_000 });
const HASH = object.storePathHash;

/** The telemetry of a transfer, whether the file is kept or not. */
const TOLD = [
  "downloading nar from upstream",
  "nar download resumed",
  "download broke off",
  "upstream lost nar",
  "upstream sent more than the nar file",
  "nar verification failed",
];

interface Case {
  /** Of the NAR of the upstream that is asked first. */
  readonly fault?: () => Fault;
  /** Of the narinfo, at both. */
  readonly narinfo?: () => Fault;
  readonly upstream?: FakeUpstreamOptions;
  /** The messages, without their facts. */
  readonly told: readonly string[];
  /** Of the requests for the NAR to the upstream that is asked first. */
  readonly results: Readonly<Record<string, number>>;
  readonly failures?: Readonly<Record<string, number>>;
}

/** All telemetry of a transfer from one of two upstreams that have the same file. */
async function telemetry({ fault, narinfo, upstream = {} }: Case, limitBytes: number) {
  const options = { ...upstream, objects: [object], stored: true };
  await using first = await fakeUpstream({ ...options, priority: 10 });
  await using second = await fakeUpstream({ ...options, priority: 20 });
  if (fault !== undefined) first.breakNar(fault());
  const upstreams = [first, second];
  if (narinfo !== undefined) { for (const one of upstreams) one.breakNarinfo(narinfo()); }
  const spans = new RecordedSpans();
  await using cache = await TestCache.open({
    upstreams,
    limitBytes,
    // An answer that a busy machine delays is not taken for one that does not come.
    timeoutMs: 10_000,
    idleTimeoutMs: 1_500,
    tracer: spans.tracer,
    upstreamTrace: upstreamTraceOf(spans.tracer, true),
  });
  const path = await cache.narPath(HASH);
  const before = (await scrape(cache)).upstreamResults(first.url);
  assert.deepEqual(before, { found: 1 }, "the narinfo");
  const answer = await cache.get(path, { "x-request-id": "build-1" });
  await answer.bytes().catch(() => undefined);
  await cache.downloadsOver();
  const after = await scrape(cache);
  const { found = 0, ...results } = after.upstreamResults(first.url);
  // Ports differ from run to run.
  const alike = <Value>(value: Value): Value =>
    JSON.parse(
      JSON.stringify(value).replaceAll(first.url, "http://first")
        .replaceAll(second.url, "http://second"),
    );
  const lines = cache.log.filter(({ msg }) => TOLD.includes(msg));
  const asked = spans.list.filter(({ name }) => name === "GET nar");
  assert.deepEqual(
    asked.map(({ span }) => traceparentOf(span)),
    upstreams.flatMap((one) => one.matching(/^\/nar\//))
      .map(({ headers }) => headers.get("traceparent")),
    "upstreams are told of the spans",
  );
  return {
    lines: alike(lines).map(({ ts: _ts, trace_id: _trace, span_id: _span, ...line }) => line),
    // Here larder requests a rest without a hash by range; where it keeps the file, from its start.
    spans: alike(asked.map(({ facts, kind, error }) => ({ facts, kind, error })))
      .filter(({ facts }) => String(facts["url.full"]).startsWith("http://first"))
      .map(({ facts: { "server.port": _, ...facts }, ...span }) => ({ ...span, facts })),
    results: found > 1 ? { found: found - 1, ...results } : results,
    failures: after.nonZero("larder_verification_failures_total"),
  };
}

function traceparentOf(span: ReadableSpan): string {
  const { traceId, spanId } = span.spanContext();
  return `00-${traceId}-${spanId}-01`;
}

const CASES: Readonly<Record<string, Case>> = {
  "is right": { told: ["downloading nar from upstream"], results: { found: 1 } },
  "breaks off, once": {
    fault: () => firstTimes(1, cutAfter(200_000)),
    told: ["downloading nar from upstream", "download broke off", "nar download resumed"],
    results: { broken: 1, found: 1 },
  },
  "comes to a stand": {
    fault: () => fileFault(stallAfter, 200_000),
    told: [
      "downloading nar from upstream",
      "download broke off",
      "nar download resumed",
    ],
    results: { broken: 1 },
  },
  "is lost": {
    fault: () => status(404),
    told: ["downloading nar from upstream", "upstream lost nar", "downloading nar from upstream"],
    results: { absent: 1 },
  },
  "is not sent for a while": {
    fault: () => status(500),
    told: ["downloading nar from upstream", "download broke off", "downloading nar from upstream"],
    results: { status: 1 },
  },
  "has another file hash": {
    fault: () => corruptByteAt(1_000),
    told: ["downloading nar from upstream", "nar verification failed"],
    results: { found: 1 },
    failures: { '{reason="file_hash"}': 1 },
  },
  "has another NAR hash": {
    upstream: { dialect: "attic" },
    fault: () => corruptByteAt(1_000),
    told: ["downloading nar from upstream", "nar verification failed"],
    results: { found: 1 },
    failures: { '{reason="nar_hash"}': 1 },
  },
  "is cut where nothing says so": {
    upstream: { compression: "none" },
    fault: () => firstTimes(1, endAfter(200_000)),
    told: ["downloading nar from upstream", "download broke off", "nar download resumed"],
    results: { broken: 1, found: 1 },
  },
  "cannot be decompressed": {
    upstream: { dialect: "attic" },
    fault: () => corruptByteAt(0),
    told: ["downloading nar from upstream", "nar verification failed"],
    results: { found: 1 },
    failures: { '{reason="undecodable"}': 1 },
  },
  "is announced with another size": {
    fault: () => followedBy(new Uint8Array(10)),
    told: [
      "downloading nar from upstream",
      "nar verification failed",
      "downloading nar from upstream",
    ],
    results: { garbage: 1 },
    failures: { '{reason="file_size"}': 1 },
  },
  "is larger than announced, without a hash that says where it ends": {
    narinfo: () => rewritten((text) => text.replace(/^FileHash: .*\n/m, "")),
    fault: () => inOrder(chunked(), followedBy(new Uint8Array(10))),
    told: ["downloading nar from upstream", "nar verification failed", "nar download resumed"],
    results: { garbage: 1 },
    failures: { '{reason="file_size"}': 1 },
  },
  "has more behind it": {
    fault: () => inOrder(chunked(), followedBy(new Uint8Array(10))),
    told: ["downloading nar from upstream", "upstream sent more than the nar file"],
    results: { found: 1 },
    failures: { '{reason="file_size"}': 1 },
  },
};

for (const [what, one] of Object.entries(CASES)) {
  Deno.test(`pass-through: a NAR that ${what} has the telemetry of a kept one`, async () => {
    const kept = await telemetry(one, Infinity);
    const passedOn = await telemetry(one, 1_000);
    assert.deepEqual(passedOn.lines.map(({ msg }) => msg), one.told);
    assert.deepEqual(passedOn.results, one.results);
    assert.deepEqual(passedOn.failures, one.failures ?? {});
    assert.deepEqual(passedOn, kept);
  });
}
