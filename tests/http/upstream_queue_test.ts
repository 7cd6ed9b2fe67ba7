import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const PATH = `/${object.storePathHash}.narinfo`;

/** The timeouts that are the default. */
const TIMEOUT_MS = 3_000;
/** What the issue allows beside the upstream timeout. */
const SLACK_MS = 500;

Deno.test("queue: a fast preferred upstream answers at once behind 400 slow misses", async () => {
  await using fast = await fakeUpstream({ objects: [object], stored: true, priority: 1 });
  await using slow = await fakeUpstream({ stored: true, priority: 2 });
  await using cache = await TestCache.open({ upstreams: [fast, slow], timeoutMs: TIMEOUT_MS });
  // From here on its priority is known, too.
  await cache.get(missing(0));
  using delay = new Delay(2_000);
  slow.onRequest = () => delay.wait();
  const misses = Array.from({ length: 400 }, (_, count) => ask(cache, missing(1 + count)));
  await slow.requested(/\.narinfo$/, 50);

  const { status, tookMs } = await ask(cache, PATH);
  assert.equal(status, 200);
  assert.ok(tookMs < SLACK_MS, `it took ${Math.round(tookMs)} ms`);
  for (const miss of await Promise.all(misses)) {
    assert.equal(miss.status, 404);
    assert.ok(miss.tookMs < TIMEOUT_MS + SLACK_MS, `it took ${Math.round(miss.tookMs)} ms`);
  }
  const failures = cache.log.filter(({ msg }) => /^upstream (failed|is down)/.test(msg));
  assert.deepEqual(failures, []);
});

Deno.test("queue: 300 slow misses are 404 in time, and only absences are remembered", async () => {
  await using slow = await fakeUpstream({ stored: true });
  await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS });
  await cache.get(missing(0));
  using delay = new Delay(2_200);
  slow.onRequest = () => delay.wait();
  const paths = Array.from({ length: 300 }, (_, count) => missing(1 + count));
  for (const { status, tookMs } of await Promise.all(paths.map((path) => ask(cache, path)))) {
    assert.equal(status, 404);
    assert.ok(tookMs < TIMEOUT_MS + SLACK_MS, `it took ${Math.round(tookMs)} ms`);
  }
  // What it had no time to answer is none of its failures, and is said once.
  assert.deepEqual(cache.logged("warn").map(({ msg }) => msg), [
    "upstream too slow for all that it is asked: some is not answered in time",
  ]);

  slow.onRequest = undefined;
  const again = await Promise.all(paths.map((path) => ask(cache, path)));
  const remembered = again.filter(({ source }) => source === "HIT").length;
  assert.equal(remembered, 200);
  assert.ok(cache.logged("info").some(({ msg }) => msg === "upstream keeps up again"));
});

Deno.test("queue: a fast preferred upstream's log comes at once behind 300 slow ones", async () => {
  const documents = { [logOf(0)]: "done\n" };
  await using fast = await fakeUpstream({ documents, priority: 1 });
  await using slow = await fakeUpstream({ priority: 2 });
  await using cache = await TestCache.open({ upstreams: [fast, slow], timeoutMs: TIMEOUT_MS });
  // From here on its priority is known, too.
  await cache.get(missing(0));
  using delay = new Delay(2_000);
  slow.onRequest = () => delay.wait();
  const misses = Array.from({ length: 300 }, (_, count) => ask(cache, logOf(1 + count)));
  await slow.requested(/^\/log/, 50);

  const { status, tookMs } = await ask(cache, logOf(0));
  assert.equal(status, 200);
  assert.ok(tookMs < SLACK_MS, `it took ${Math.round(tookMs)} ms`);
  for (const miss of await Promise.all(misses)) {
    assert.equal(miss.status, 404);
    assert.ok(miss.tookMs < TIMEOUT_MS + SLACK_MS, `it took ${Math.round(miss.tookMs)} ms`);
  }
  const failures = cache.log.filter(({ msg }) => /^upstream (failed|is down)/.test(msg));
  assert.deepEqual(failures, []);
});

Deno.test("queue: what a slow upstream had no time for is no absence of a log", async () => {
  await using slow = await fakeUpstream();
  await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS });
  await cache.get(missing(0));
  using delay = new Delay(2_200);
  slow.onRequest = () => delay.wait();
  const paths = Array.from({ length: 150 }, (_, count) => logOf(count));
  for (const { status, tookMs } of await Promise.all(paths.map((path) => ask(cache, path)))) {
    assert.equal(status, 404);
    assert.ok(tookMs < TIMEOUT_MS + SLACK_MS, `it took ${Math.round(tookMs)} ms`);
  }

  slow.onRequest = undefined;
  const again = await Promise.all(paths.map((path) => ask(cache, path)));
  assert.equal(again.filter(({ source }) => source === "HIT").length, 100);
});

function logOf(index: number): string {
  return `/log/${String(index).padStart(32, "0")}-thing.drv`;
}

/** A path that nobody has. */
function missing(index: number): string {
  return `/${String(index).padStart(32, "0")}.narinfo`;
}

async function ask(cache: TestCache, path: string) {
  const startedAt = performance.now();
  const { status, headers } = await cache.get(path);
  const tookMs = performance.now() - startedAt;
  return { status, source: headers.get("x-cache"), tookMs };
}

/** Takes its time with each answer, but for those that nobody waits for at the end. */
class Delay implements Disposable {
  readonly #ms: number;
  readonly #timers = new Map<ReturnType<typeof setTimeout>, () => void>();

  constructor(ms: number) {
    this.#ms = ms;
  }

  wait(): Promise<undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        resolve(undefined);
      }, this.#ms);
      this.#timers.set(timer, () => resolve(undefined));
    });
  }

  [Symbol.dispose](): void {
    for (const [timer, resolve] of this.#timers) {
      clearTimeout(timer);
      resolve();
    }
  }
}
