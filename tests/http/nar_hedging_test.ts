import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, dropped, type Fault, heldUntil, status } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { assertInTime, timedTest } from "../support/timed_test.ts";

const object = makeStoreObject({ name: "big-1.0", size: 1_000_000 });
const HASH = object.storePathHash;
const forEver = new Promise<never>(() => {});

const TIMEOUT_MS = 1_500;
const THIRD_MS = TIMEOUT_MS / 3;
/** A third of it is more than an answer takes here, however busy the machine is. */
const LONG_TIMEOUT_MS = 60_000;
/** The most by which a test may take longer than it must, on a busy machine. */
const SLACK_MS = 450;

/** A limit that leaves no room has the NAR passed through. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  const requested = (faults: readonly (Fault | undefined)[], method?: "HEAD") =>
    request(faults, { limitBytes, ...(method && { method }) });

  timedTest(`hedging: ${way}, the next upstream gets a request if the first is late`, async () => {
    const { answer, counts, tookMs, ended } = await requested([heldUntil(forEver), undefined]);
    assert.equal(answer, "whole");
    assert.deepEqual(counts, [1, 1]);
    assert.ok(tookMs >= THIRD_MS - 10, `${tookMs} ms`);
    assertInTime(tookMs, THIRD_MS + SLACK_MS);
    assert.equal(ended[0], "left");
  });

  Deno.test(`hedging: ${way}, no other gets a request if the first answers in time`, async () => {
    const faults = [slowly(2 * THIRD_MS), undefined, undefined];
    const { answer, counts } = await request(faults, { limitBytes, timeoutMs: LONG_TIMEOUT_MS });
    assert.equal(answer, "whole");
    assert.deepEqual(counts, [1, 0, 0]);
  });

  Deno.test(`hedging: ${way}, the first is still waited for, and the second given up`, async () => {
    const other = Promise.withResolvers<void>();
    const hanging: Fault = (answer, exchange) => {
      other.resolve();
      return heldUntil(forEver)(answer, exchange);
    };
    const { answer, counts, ended } = await requested([heldUntil(other.promise), hanging]);
    assert.equal(answer, "whole");
    assert.deepEqual(counts, [1, 1]);
    assert.equal(ended[1], "left");
  });

  timedTest(`hedging: ${way}, two that hang are 404 after the timeout and a third`, async () => {
    const { answer, counts, tookMs } = await requested([heldUntil(forEver), heldUntil(forEver)]);
    assert.equal(answer, 404);
    assert.deepEqual(counts, [1, 1]);
    const expectedMs = TIMEOUT_MS + THIRD_MS;
    assert.ok(tookMs >= expectedMs - 10, `${tookMs} ms`);
    assertInTime(tookMs, expectedMs + SLACK_MS);
  });

  timedTest(`hedging: ${way}, after a failure the next one gets a request at once`, async () => {
    const { answer, tookMs } = await requested([status(500), status(404), undefined]);
    assert.equal(answer, "whole");
    assertInTime(tookMs, THIRD_MS);
  });

  Deno.test(`hedging: ${way}, one that was outrun goes on for a broken one`, async () => {
    const quicker: Fault = (answer, exchange) =>
      exchange.headers.has("range") ? dropped()(answer, exchange) : cutAfter(300_000)(
        answer,
        exchange,
      );
    const { answer } = await requested([slowly(THIRD_MS + 200), quicker]);
    assert.equal(answer, "whole");
  });
}

timedTest("hedging: HEAD asks the next upstream when the first is late, too", async () => {
  const { answer, tookMs } = await request([heldUntil(forEver), undefined], { method: "HEAD" });
  assert.equal(answer, 200);
  assertInTime(tookMs, THIRD_MS + SLACK_MS);
});

interface RequestOptions {
  readonly limitBytes?: number;
  readonly method?: "GET" | "HEAD";
  readonly timeoutMs?: number;
}

/** Asks for the NAR where each upstream in order of preference has its fault. */
async function request(
  faults: readonly (Fault | undefined)[],
  { limitBytes = Infinity, method = "GET", timeoutMs = TIMEOUT_MS }: RequestOptions,
) {
  await using stack = new AsyncDisposableStack();
  const upstreams: FakeUpstream[] = [];
  for (const [index, fault] of faults.entries()) {
    const options = { objects: [object], stored: true, priority: 10 + index };
    const upstream = stack.use(await fakeUpstream(options));
    if (fault !== undefined) upstream.breakNar(fault);
    upstreams.push(upstream);
  }
  const options = { upstreams, timeoutMs, limitBytes };
  const cache = stack.use(await TestCache.open(options));
  const path = await cache.narPath(HASH);
  const startedAtMs = performance.now();
  const answer = await cache.request(method, path);
  const tookMs = performance.now() - startedAtMs;
  const body = await answer.bytes();
  const expected = (await upstreams[0]?.narFileOf(object))?.bytes;
  const isWhole = method === "GET" && answer.status === 200;
  if (isWhole) assert.deepEqual(body, expected);
  await cache.downloadsOver();
  const asked = upstreams.map((upstream) => upstream.matching(/^\/nar\//));
  const ended = await Promise.all(
    asked.map(([first]) => first && clock.within(first.finished, 3_000)),
  );
  const counts = asked.map(({ length }) => length);
  return { answer: isWhole ? "whole" : answer.status, counts, tookMs, ended };
}

function slowly(ms: number): Fault {
  return async (answer) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return answer;
  };
}
