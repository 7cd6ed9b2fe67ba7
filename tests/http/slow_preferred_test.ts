import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { readStats } from "../support/stats_of.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { assertInTime, timedTest } from "../support/timed_test.ts";

const objects = Array.from({ length: 5 }, (_, seed) => makeStoreObject({ name: "thing", seed }));
const LOG_PATH = `/log/${"0".repeat(32)}-thing.drv`;
const stored = { objects, documents: { [LOG_PATH]: "built\n" }, stored: true } as const;

const PATIENCE_MS = 300;
const SLACK_MS = 500;

timedTest(
  "slow preferred: another's path is served within 300 ms, and people are told",
  async () => {
    await using scene = await Scene.open();
    const { cache, slow } = scene;
    for (const { storePathHash } of objects) {
      const startedAtMs = performance.now();
      assert.equal((await cache.get(`/${storePathHash}.narinfo`)).status, 200);
      assertInTime(performance.now() - startedAtMs, PATIENCE_MS + SLACK_MS);
    }

    const warnings = cache.logged("warn").filter(({ upstream }) => upstream === slow.url);
    assert.deepEqual(warnings.map(({ msg }) => msg), ["upstream is slow: clients wait for it"]);
    assert.match(String(warnings[0]?.["hint"]), /lower its priority.*or remove it/);
    const { upstreams, verdict } = await readStats(await cache.get("/stats"));
    assert.equal(verdict.is_well, false);
    assert.match(verdict.faults[0]?.hint ?? "", /lower its priority/);
    const waits = upstreams.find(({ url }) => url === slow.url)?.waits;
    assert.deepEqual([waits?.count, waits?.late], [objects.length, objects.length]);
    assert.ok((waits?.longest_ms ?? 0) >= PATIENCE_MS - 5);
    const page = await (await cache.get("/", { accept: "text/html" })).text();
    assert.match(
      page,
      /Clients waited for it 5 times, \d+ ms on average and \d+ ms at most, 5 times/,
    );
    const explained = await (await cache.get(`/explain?path=${objects[0]?.storePathHash}`)).text();
    assert.match(explained, /had not answered at .* The client waited \d+ ms for it/);
  },
);

timedTest("slow preferred: a document of another is served within 300 ms", async () => {
  await using scene = await Scene.open();
  const startedAtMs = performance.now();
  assert.equal((await scene.cache.get(LOG_PATH)).status, 200);
  assertInTime(performance.now() - startedAtMs, PATIENCE_MS + SLACK_MS);
  const { upstreams } = await readStats(await scene.cache.get("/stats"));
  assert.equal(upstreams.find(({ url }) => url === scene.slow.url)?.waits.late, 1);
});

Deno.test("slow preferred: it is waited for while no other has the path", async () => {
  await using slow = await fakeUpstream({ ...stored, priority: 10 });
  await using other = await fakeUpstream({ stored: true, priority: 40 });
  const hold = Promise.withResolvers<undefined>();
  slow.onRequest = ({ path }) => path.endsWith(".narinfo") ? hold.promise : undefined;
  await using cache = await TestCache.open({ upstreams: [slow, other] });
  const asked = cache.get(`/${objects[0]?.storePathHash}.narinfo`);
  await other.requested(/\.narinfo$/, 1);
  await new Promise((resolve) => setTimeout(resolve, 2 * PATIENCE_MS));
  hold.resolve(undefined);
  assert.equal((await asked).status, 200);
  const { upstreams } = await readStats(await cache.get("/stats"));
  assert.deepEqual(upstreams.map(({ waits }) => waits.count), [0, 0]);
});

timedTest("slow preferred: the warning ends once it is quick again", async () => {
  await using scene = await Scene.open();
  const { cache, slow } = scene;
  for (const { storePathHash } of objects) await cache.get(`/${storePathHash}.narinfo`);
  slow.onRequest = undefined;
  let seed = 100;
  await eventually("it is quick enough", async () => {
    const object = makeStoreObject({ name: "later", seed: seed++ });
    scene.other.add(object);
    await cache.get(`/${object.storePathHash}.narinfo`);
    return cache.log.some(({ msg }) => msg === "upstream is quick enough again");
  });
});

/** A slow upstream that is preferred and has nothing, and a quick one that has all. */
class Scene implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly cache: TestCache;
  readonly slow: FakeUpstream;
  readonly other: FakeUpstream;

  private constructor(
    stack: AsyncDisposableStack,
    { cache, slow, other }: Pick<Scene, "cache" | "slow" | "other">,
  ) {
    this.#stack = stack;
    this.cache = cache;
    this.slow = slow;
    this.other = other;
  }

  static async open(): Promise<Scene> {
    const stack = new AsyncDisposableStack();
    const hold = Promise.withResolvers<undefined>();
    stack.defer(() => hold.resolve(undefined));
    const slow = stack.use(await fakeUpstream({ stored: true, priority: 10 }));
    const other = stack.use(await fakeUpstream({ ...stored, priority: 40 }));
    slow.onRequest = ({ path }) => path === "/nix-cache-info" ? undefined : hold.promise;
    const cache = stack.use(await TestCache.open({ upstreams: [slow, other] }));
    cache.probeUpstreams();
    return new Scene(stack, { cache, slow, other });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}
