import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import {
  chunked,
  cutAfter,
  dropped,
  endAfter,
  type Fault,
  fileFault,
  inOrder,
  stallAfter,
  status,
} from "../support/faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { assertInTime, timedTest, TooSlow } from "../support/timed_test.ts";

const object = makeStoreObject({ name: "big-1.0", size: 1_000_000 });
const HASH = object.storePathHash;
const HALF = 500_000;
/** Half of the file comes. Then the upstream fails in one of these ways. */
const ERRORS: Readonly<Record<string, Fault>> = {
  "cut": fileFault(cutAfter, HALF),
  "cut in chunks": inOrder(chunked(), fileFault(cutAfter, HALF)),
  "short": fileFault(endAfter, HALF),
  "reset": thenRest(dropped()),
  "500": thenRest(status(500)),
  "503": thenRest(status(503, { "retry-after": "0" })),
};

/** Newer than 2.6, `fetch` itself repeats a request that a reused connection lost. */
const FETCH_RESENDS = !Deno.version.deno.startsWith("2.6.");

/** A limit that leaves no room has the NAR passed through. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  for (const count of [1, 2, 3]) {
    timedTest(
      `given up: ${way}, a NAR with an error at each of ${count} upstreams is soon over`,
      async () => {
        await Promise.all(
          Object.entries(ERRORS).map(async ([name, fault]) => {
            const { requests, tookMs, log } = await fetched(Array(count).fill(fault), limitBytes);
            const resent = name === "reset" && FETCH_RESENDS ? count : 0;
            assert.ok(requests <= 12 + resent, `${name}: ${requests} requests`);
            // The time for errors ends before the third round.
            if (requests < 3 * count) throw new TooSlow(`${name}: ${requests} requests`);
            assertInTime(tookMs, 6_000);
            const [line, ...others] = log.filter(({ msg }) => msg === "nar download given up");
            assert.deepEqual([line?.level, line?.["name"], others], ["warn", "big-1.0", []], name);
            assert.ok(line?.["upstream"] && line["reason"] && line["detail"], name);
          }),
        );
      },
    );
  }

  Deno.test(`given up: ${way}, busy upstreams before an error count, too`, async () => {
    const busy = status(503, { "retry-after": "0" });
    const { requests } = await fetched([busy, dropped(), thenRest(dropped())], limitBytes);
    assert.ok(requests <= 12, `${requests} requests`);
  });

  Deno.test(`given up: ${way}, a source with three errors gets no more requests`, async () => {
    const { complete, byUpstream } = await fetchedFrom([status(500), inTurns()], limitBytes);
    assert.ok(complete, "the other brings the file");
    assert.equal(byUpstream[0], 3);
    assert.ok((byUpstream[1] ?? 0) > 6, "the first could have had a fourth");
  });

  timedTest(`given up: ${way}, beside an error a stalled upstream has its time`, async () => {
    const faults = [fileFault(cutAfter, HALF), fileFault(stallAfter, HALF)];
    const { tookMs } = await fetched(faults, limitBytes, 5_000);
    assert.ok(tookMs >= 5_000, `${tookMs} ms`);
    assertInTime(tookMs, 10_000);
  });
}

/** Asks for the NAR, and fails when it comes whole. */
async function fetched(...given: Parameters<typeof fetchedFrom>) {
  const { complete, byUpstream, ...result } = await fetchedFrom(...given);
  assert.ok(!complete);
  return { ...result, requests: byUpstream.reduce((sum, count) => sum + count, 0) };
}

async function fetchedFrom(faults: readonly Fault[], limitBytes: number, idleTimeoutMs = 30_000) {
  await using stack = new AsyncDisposableStack();
  const upstreams: FakeUpstream[] = [];
  for (const [index, fault] of faults.entries()) {
    const options = { objects: [object], stored: true, priority: 10 + index };
    const upstream = stack.use(await fakeUpstream(options));
    upstream.breakNar(fault);
    upstreams.push(upstream);
  }
  const options = { upstreams, idleTimeoutMs, limitBytes };
  const cache = stack.use(await TestCache.open(options));
  const path = await cache.narPath(HASH);
  const server = stack.use(cache.listen());
  const startedAtMs = performance.now();
  const answer = await rawRequest(server.port, requestText("GET", path));
  const tookMs = performance.now() - startedAtMs;
  assert.equal(answer.status, 200);
  const byUpstream = upstreams.map((upstream) => upstream.count(/^\/nar\//));
  return { complete: answer.complete, byUpstream, tookMs, log: cache.log };
}

/** The first half for a request from the start, and the fault for a request for the rest. */
function thenRest(fault: Fault): Fault {
  return (answer, exchange) =>
    exchange.headers.has("range") ? fault(answer, exchange) : cutAfter(HALF)(answer, exchange);
}

/** Each second request fails; the others add to the file. Five of them bring it whole. */
function inTurns(): Fault {
  let count = 0;
  return (answer, exchange) =>
    (count++ % 2 === 0 ? cutAfter(220_000) : status(500))(answer, exchange);
}
