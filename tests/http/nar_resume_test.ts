import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import {
  chunked,
  closeDelimited,
  cutAfter,
  endAfter,
  type Fault,
  fileFault,
  firstTimes,
  Gate,
  inOrder,
  stallAfter,
} from "../support/faults.ts";
import { type RawAnswer, RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "big-1.0", size: 1_000_000 });
const HASH = object.storePathHash;
const stored = { objects: [object], stored: true } as const;
const HALF = 500_000;

/** The fault of the first response; all that follow are right. */
const BREAKS: Readonly<Record<string, Fault>> = {
  "a cut": cutAfter(HALF),
  "a cut in chunks": inOrder(chunked(), cutAfter(HALF)),
  "a stall": stallAfter(HALF),
  "a clean end without a length": endAfter(HALF),
  "a cut without a length": inOrder(closeDelimited(), cutAfter(HALF)),
};

for (const dialect of ["nixos", "cachix", "attic", "harmonia", "nix-serve"] as const) {
  for (const [name, fault] of Object.entries(BREAKS)) {
    Deno.test(`resume: after ${name} (${dialect}) the body goes on, unbroken`, async () => {
      await using upstream = await fakeUpstream({ ...stored, dialect });
      upstream.breakNar(firstTimes(1, fault));
      const { bytes } = await upstream.narFileOf(object);

      const { answer, kept } = await fetched({ upstreams: [upstream], idleTimeoutMs: 300 });

      assert.deepEqual([answer.status, answer.complete], [200, true]);
      assert.ok(equal(answer.body, bytes));
      assert.ok(kept);
      assert.deepEqual(rangesAsked(upstream), [null, `bytes=${HALF}-`]);
    });
  }
}

Deno.test("resume: after a break the same upstream sends the rest, and no other one", async () => {
  await using breaking = await fakeUpstream({ ...stored, priority: 10 });
  await using other = await fakeUpstream({ ...stored, priority: 20 });
  breaking.breakNar(firstTimes(1, cutAfter(HALF)));
  const { bytes } = await breaking.narFileOf(object);

  const { answer, kept } = await fetched({ upstreams: [breaking, other] });

  assert.ok(answer.complete && equal(answer.body, bytes));
  assert.ok(kept);
  assert.deepEqual(rangesAsked(breaking), [null, `bytes=${HALF}-`]);
  assert.deepEqual(rangesAsked(other), []);
});

Deno.test("resume: another upstream that has the same file goes on where one died", async () => {
  await using dying = await fakeUpstream({ ...stored, priority: 10 });
  await using other = await fakeUpstream({ ...stored, priority: 20 });
  dying.breakNar(firstTimes(1, cutAfter(HALF)));
  dying.onRequest = ({ headers }) =>
    headers.has("range") ? new Response(null, { status: 500 }) : undefined;
  const { bytes } = await other.narFileOf(object);

  const { answer, kept } = await fetched({ upstreams: [dying, other] });

  assert.ok(answer.complete && equal(answer.body, bytes));
  assert.ok(kept);
  assert.deepEqual(rangesAsked(other), [`bytes=${HALF}-`]);
});

Deno.test("resume: an upstream that got the file only later sends the rest", async () => {
  await using dying = await fakeUpstream(stored);
  await using other = await fakeUpstream({ stored: true });
  const gate = new Gate();
  dying.breakNar(gate.fault);
  await using cache = await TestCache.open({ upstreams: [dying, other] });
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  const clients = ["first", "joined"].map(() => rawRequest(server.port, requestText("GET", path)));
  gate.release(HALF);
  await gate.reached(HALF);
  // Only now: when the client requested the narinfo, one upstream had it.
  other.add(object);
  await dying.stop();

  const { bytes } = await dying.narFileOf(object);
  for (const { complete, body } of await Promise.all(clients)) {
    assert.ok(complete && equal(body, bytes));
  }
  assert.match(rangesAsked(other).join(), /^bytes=[0-9]+-$/);
});

Deno.test("resume: an upstream without ranges sends all, larder skips its own bytes", async () => {
  await using dying = await fakeUpstream({ ...stored, priority: 10 });
  await using other = await fakeUpstream({ ...stored, priority: 20, hasRanges: false });
  dying.breakNar(fileFault(cutAfter, HALF));
  const { bytes } = await other.narFileOf(object);
  const { answer, kept } = await fetched({ upstreams: [dying, other] });
  assert.ok(answer.complete && equal(answer.body, bytes));
  assert.ok(kept);
});

/** A limit that leaves no room has the NAR passed through without being kept. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  for (const hasRange of [true, false]) {
    const what = hasRange
      ? "with Content-Range is what that says"
      : "alone is the whole file again";
    Deno.test(`resume: ${way}, after three cuts a 200 ${what}`, async () => {
      await using upstream = await fakeUpstream(stored);
      const { bytes } = await upstream.narFileOf(object);
      upstream.breakNar((answer, exchange) => {
        const isLast = upstream.count(/^\/nar\//) > 3;
        if (!isLast) return cutAfter(100_000)(answer, exchange);
        if (hasRange) return { ...answer, status: 200 };
        const headers = new Headers(answer.headers);
        headers.delete("content-range");
        return { status: 200, headers, body: bytes, framing: bytes.length };
      });
      await using cache = await TestCache.open({ upstreams: [upstream], limitBytes });
      const path = await cache.narPath(HASH);
      await using server = cache.listen();

      const answer = await rawRequest(server.port, requestText("GET", path));

      assert.ok(answer.complete && equal(answer.body, bytes));
      assert.equal(rangesAsked(upstream).length, 4);
      await cache.downloadsOver();
      assert.deepEqual(cache.logged("error"), []);
      const metrics = await (await cache.get("/metrics")).text();
      assert.doesNotMatch(metrics, /^larder_verification_failures_total\{.*\} [1-9]/m);
    });
  }
}

Deno.test("resume: an upstream that restarts meanwhile finishes its own transfer", async () => {
  await using upstream = await fakeUpstream(stored);
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  const { bytes } = await upstream.narFileOf(object);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  await using client = await RawConnection.open(server.port);
  await client.send(requestText("GET", path));
  gate.release(HALF);
  const { reader } = await client.answer();
  await reader.read(HALF / 2);
  await upstream.stop();
  gate.open();
  await upstream.start();

  const rest = await reader.read();

  assert.ok(reader.isComplete && equal(rest, bytes.subarray(HALF / 2)));
});

Deno.test("resume: one that breaks off again and again gets to the end", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNar(cutAfter(100_000));
  const { bytes } = await upstream.narFileOf(object);
  const { answer } = await fetched({ upstreams: [upstream] });
  assert.ok(answer.complete && equal(answer.body, bytes));
  assert.equal(upstream.count(/^\/nar\//), 11);
});

Deno.test("resume: an upstream that sends a byte at a time is given up", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNar(cutAfter(1));
  const { answer, kept } = await fetched({ upstreams: [upstream], idleTimeoutMs: 500 });
  assert.deepEqual([answer.complete, kept], [false, false]);
  assert.ok(upstream.count(/^\/nar\//) <= 12, `${upstream.count(/^\/nar\//)} requests`);
});

Deno.test("resume: a body that lacks its end alone is whole", async () => {
  for (const dialect of ["nixos", "attic", "harmonia"] as const) {
    await using upstream = await fakeUpstream({ ...stored, dialect, hasRanges: true });
    const { bytes } = await upstream.narFileOf(object);
    upstream.breakNar(firstTimes(1, inOrder(chunked(), cutAfter(bytes.length))));
    const { answer, kept } = await fetched({ upstreams: [upstream] });
    assert.ok(answer.complete && equal(answer.body, bytes), dialect);
    assert.ok(kept);
  }
});

Deno.test("resume: when nothing helps the client sees a break, chunked or not", async () => {
  for (const dialect of ["nixos", "attic"] as const) {
    await using upstream = await fakeUpstream({ ...stored, dialect });
    upstream.breakNar(fileFault(cutAfter, HALF));
    const { bytes } = await upstream.narFileOf(object);
    const { answer, kept } = await fetched({ upstreams: [upstream], idleTimeoutMs: 500 });
    assert.equal(answer.headers.has("content-length"), dialect === "nixos");
    assert.deepEqual([answer.status, answer.complete, kept], [200, false, false]);
    assert.ok(answer.body.length > HALF - 10 && answer.body.length <= HALF);
    assert.ok(equal(answer.body, bytes.subarray(0, answer.body.length)));
  }
});

async function fetched(
  options: TestCacheOptions,
): Promise<{ readonly answer: RawAnswer; readonly kept: boolean }> {
  await using cache = await TestCache.open(options);
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  const answer = await rawRequest(server.port, requestText("GET", path));
  await cache.downloadsOver();
  const kept = (await Array.fromAsync(cache.nars.list(""))).length > 0;
  assert.deepEqual(cache.growingFiles(), []);
  return { answer, kept };
}

/** The Range of each request for a NAR. */
function rangesAsked(upstream: FakeUpstream): readonly (string | null)[] {
  return upstream.matching(/^\/nar\//).map(({ headers }) => headers.get("range"));
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
