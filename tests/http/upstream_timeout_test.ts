import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { heldUntil, stallAfter } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { assertInTime, timedTest } from "../support/timed_test.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 500_000 });
const PATH = `/${object.storePathHash}.narinfo`;
const stored = { objects: [object], stored: true } as const;

/** The most by which a test may exceed the limit that it sets, on a busy machine. */
const SLACK_MS = 500;

timedTest(
  "timeout: an upstream that accepts and says nothing is 404 after the idle timeout",
  async () => {
    await using upstream = await fakeUpstream(stored);
    const never = Promise.withResolvers<void>();
    upstream.breakNarinfo(heldUntil(never.promise));
    const limits = { headerTimeoutMs: 100, dialTimeoutMs: 10_000 };
    await using cache = await TestCache.open({ upstreams: [upstream], limits, idleTimeoutMs: 300 });
    await assertAbsentWithin(cache, 300);
    assert.equal(cache.logged("warn")[0]?.["reason"], "timeout");
    never.resolve();
  },
);

timedTest("timeout: a narinfo that stops in the middle is 404 in time", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNarinfo(stallAfter(20));
  await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs: 300 });
  await assertAbsentWithin(cache, 300);
});

timedTest("timeout: an upstream that does not accept is 404 after the dial timeout", async () => {
  await using full = await fullListener();
  const limits = { headerTimeoutMs: 10_000, dialTimeoutMs: 300 };
  await using cache = await TestCache.open({ upstreams: [full.url], limits });
  await assertAbsentWithin(cache, 300);
  assert.match(String(cache.logged("warn")[0]?.["detail"]), /connecting took over 300ms/);
});

Deno.test("timeout: a slow upstream does not delay a preferred quick one", async () => {
  await using quick = await fakeUpstream({ ...stored, priority: 1 });
  await using slow = await fakeUpstream({ ...stored, priority: 2 });
  const never = Promise.withResolvers<void>();
  slow.breakNarinfo(heldUntil(never.promise));
  await using cache = await TestCache.open({ upstreams: [quick, slow], timeoutMs: 10_000 });
  assert.equal((await cache.get(PATH)).status, 200);
  never.resolve();
});

Deno.test("timeout: a NAR body may take long as long as bytes keep coming", async () => {
  await using upstream = await fakeUpstream(stored);
  // Four stalls, each well below the limit, in all well above it.
  for (const bytes of [100_000, 200_000, 300_000, 400_000]) {
    upstream.breakNar(
      stallAfter(bytes, new Promise((resume) => setTimeout(resume, bytes / 1_000))),
    );
  }
  await using cache = await TestCache.open({ upstreams: [upstream], idleTimeoutMs: 250 });
  const body = await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  assert.equal(body.length, (await upstream.narFileOf(object)).bytes.length);
});

async function assertAbsentWithin(cache: TestCache, limitMs: number): Promise<void> {
  const startedAtMs = performance.now();
  assert.equal((await cache.get(PATH)).status, 404);
  const tookMs = performance.now() - startedAtMs;
  assertInTime(tookMs, limitMs + SLACK_MS);
}

/** A port whose queue of connections is full: the system answers nothing more. */
async function fullListener(): Promise<AsyncDisposable & { readonly url: string }> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 1 });
  const { port } = listener.addr;
  const connections: Deno.Conn[] = [];
  for (let full = false; !full;) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), 200);
    try {
      connections.push(
        await Deno.connect({ hostname: "127.0.0.1", port, signal: abort.signal }),
      );
    } catch {
      full = true;
    }
    clearTimeout(timer);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const connection of connections) connection.close();
      listener.close();
    },
  };
}
