import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderFlags, startLarder } from "../support/larder_process.ts";
import { spansOf, type TestSpan } from "../support/otlp.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 200_000 });
const NARINFO_TRACE = "0af7651916cd43dd8448eb211c80319c";
const HEAD_TRACE = "1bf7651916cd43dd8448eb211c80319d";
const NAR_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT_ID = "b7ad6b7169203331";

interface Case {
  readonly flags?: LarderFlags;
  /** Of the client's `traceparent`. */
  readonly sampled?: boolean;
  readonly tracestate?: string;
}

interface Outcome {
  readonly spans: readonly TestSpan[];
  /** Of the upstream's requests; `undefined`: none was sent. */
  readonly cacheInfo: string | undefined;
  readonly narinfo: string | undefined;
  readonly head: string | undefined;
  readonly nar: string | undefined;
  /** The `tracestate` beside each `traceparent`. */
  readonly states: readonly (string | null)[];
}

/** Asks for a narinfo, a NAR's size and the NAR, each in a trace of its own. */
async function pull({ flags = {}, sampled = true, tracestate }: Case): Promise<Outcome> {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    // The NAR is to be requested by the client that HEAD and GET follow.
    "cache-prefetch": "false",
    "otel-enabled": "true",
    ...flags,
  });
  const ask = (method: string, path: string, traceId: string) => {
    const traceparent = `00-${traceId}-${PARENT_ID}-${sampled ? "01" : "00"}`;
    const headers = { traceparent, ...(tracestate === undefined ? {} : { tracestate }) };
    return fetch(`${larder.url}/${path}`, { method, headers });
  };
  const narinfo = await ask("GET", `${object.storePathHash}.narinfo`, NARINFO_TRACE);
  const path = /^URL: (.*)$/m.exec(await narinfo.text())?.[1] ?? "";
  await (await ask("HEAD", path, HEAD_TRACE)).bytes();
  const nar = await ask("GET", path, NAR_TRACE);
  assertSameBytes(await nar.bytes(), (await upstream.narFileOf(object)).bytes);
  await upstream.requested("/nix-cache-info");
  larder.kill("SIGTERM");
  await larder.ended;
  const sent = (pattern: RegExp, method: string) => traceparentOf(upstream, pattern, method);
  return {
    spans: spansOf(larder.lines),
    cacheInfo: sent(/nix-cache-info/, "GET"),
    narinfo: sent(/\.narinfo$/, "GET"),
    head: sent(/^\/nar\//, "HEAD"),
    nar: sent(/^\/nar\//, "GET"),
    states: upstream.matching(/./).map(({ headers }) => headers.get("tracestate")),
  };
}

function traceparentOf(upstream: FakeUpstream, pattern: RegExp, method: string) {
  const [request] = upstream.matching(pattern, method);
  assert.ok(request !== undefined, `${method} ${pattern} was asked`);
  return request.headers.get("traceparent") ?? undefined;
}

/** The trace header that an upstream gets below this span. */
function below(spans: readonly TestSpan[], name: string, traceId: string): string {
  const span = spans.find((one) => one.name === name && one.traceId === traceId);
  assert.ok(span !== undefined, `${name} was traced`);
  return `00-${traceId}-${span.spanId}-01`;
}

const ON = { "otel-propagate-to-upstreams": "true" };

Deno.test("otel: if enabled, upstream requests carry the client request's trace", async () => {
  const { spans, ...sent } = await pull({ flags: ON });
  assert.equal(sent.narinfo, below(spans, "GET narinfo", NARINFO_TRACE));
  assert.equal(sent.head, below(spans, "HEAD nar", HEAD_TRACE));
  assert.equal(sent.nar, below(spans, "GET nar", NAR_TRACE));
  assert.equal(sent.cacheInfo, undefined);
});

Deno.test("otel: the upstream request of a pass-through carries the trace, too", async () => {
  const { spans, nar } = await pull({ flags: { ...ON, "cache-max-size": "1000" } });
  assert.equal(nar, below(spans, "GET nar", NAR_TRACE));
});

const SILENT: Readonly<Record<string, Case>> = {
  "by default": {},
  "when the request is not traced": { flags: ON, sampled: false },
  "without OpenTelemetry": { flags: { ...ON, "otel-enabled": "false" } },
};

for (const [when, how] of Object.entries(SILENT)) {
  Deno.test(`otel: upstreams get no trace ${when}`, async () => {
    const { spans: _spans, states, ...sent } = await pull({ ...how, tracestate: "a=1" });
    assert.ok(states.every((state) => state === null));
    assert.deepEqual(Object.values(sent), [undefined, undefined, undefined, undefined]);
  });
}

Deno.test("otel: the tracestate of a client goes along", async () => {
  const tracestate = "vendor@of-a=x;y:z, b=2";
  const { spans, states } = await pull({ flags: ON, tracestate });
  const passedOn = "vendor@of-a=x;y:z,b=2";
  // The narinfo, the NAR's size and the NAR. larder's own request for nix-cache-info has none.
  assert.deepEqual(states.filter((state) => state !== null), [passedOn, passedOn, passedOn]);
  assert.ok(spans.length > 0 && spans.every(({ traceState }) => traceState === passedOn));
});

const MALFORMED: Readonly<Record<string, string>> = {
  "a bad member": "a=1,b",
  "a key of capitals": "a=1,B=2",
  "a member twice": "a=1,a=2",
  "more than 512 characters": `a=${"x".repeat(200)},b=${"x".repeat(200)},c=${"x".repeat(200)}`,
};

for (const [what, tracestate] of Object.entries(MALFORMED)) {
  Deno.test(`otel: a tracestate with ${what} is dropped, and the trace goes on`, async () => {
    const { narinfo, states } = await pull({ flags: ON, tracestate });
    assert.match(String(narinfo), new RegExp(NARINFO_TRACE));
    assert.ok(states.every((state) => state === null));
  });
}
