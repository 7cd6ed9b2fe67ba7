import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const PATH = `/${object.storePathHash}.narinfo`;

const TIMEOUT_MS = 5_000;
/** A busy machine may take this much longer; a second timeout in a row takes more. */
const SLACK_MS = 4_000;
/** No timeout ends a request before the test lets it go. */
const LONG_TIMEOUT_MS = 60_000;

for (
  const [what, { path, missing, pattern }] of Object.entries({
    "narinfo": { path: PATH, missing: missingNarinfo, pattern: /\.narinfo$/ },
    "log": { path: logOf(0), missing: logOf, pattern: /^\/log/ },
  })
) {
  Deno.test(`queue: a fast upstream's ${what} waits for none of 400 slow misses`, async () => {
    const documents = { [logOf(0)]: "done\n" };
    const options = { objects: [object], documents, stored: true, priority: 1 };
    await using fast = await fakeUpstream(options);
    await using slow = await fakeUpstream({ stored: true, priority: 2 });
    await using cache = await TestCache.open({
      upstreams: [fast, slow],
      timeoutMs: LONG_TIMEOUT_MS,
    });
    // From here on its priority is known, too.
    await cache.get(missingNarinfo(0));
    using hold = new Hold();
    slow.onRequest = () => hold.released;
    let answered = 0;
    const misses = Array.from({ length: 400 }, async (_, count) => {
      const answer = await ask(cache, missing(1 + count));
      answered++;
      return answer;
    });
    await slow.requested(pattern, 50);

    assert.equal((await ask(cache, path)).status, 200);
    assert.equal(answered, 0);
    hold.release();
    for (const { status } of await Promise.all(misses)) assert.equal(status, 404);
    const failures = cache.log.filter(({ msg }) => /^upstream (failed|is down)/.test(msg));
    assert.deepEqual(failures, []);
  });
}

for (
  const [what, { missing, pattern, inFlightMax }] of Object.entries({
    "narinfos": { missing: missingNarinfo, pattern: /\.narinfo$/, inFlightMax: 200 },
    "logs": { missing: logOf, pattern: /^\/log/, inFlightMax: 100 },
  })
) {
  Deno.test(`queue: slow ${what} are 404 in time, and only absences remembered`, async () => {
    await using slow = await fakeUpstream({ stored: true });
    // All of them begin at once: a database on a server would find their rows one after another.
    const rows = { metadata: new MemoryMetadataStore() };
    await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS, ...rows });
    await cache.get(missingNarinfo(0));
    const before = slow.count(pattern);
    // The first are answered once all of them are here, the others never.
    using first = new Hold();
    using never = new Hold();
    let asked = 0;
    slow.onRequest = () => asked++ < inFlightMax ? first.released : never.released;
    const paths = Array.from({ length: inFlightMax * 3 / 2 }, (_, count) => missing(1 + count));
    const misses = Promise.all(paths.map((path) => ask(cache, path)));
    await slow.requested(pattern, before + inFlightMax);
    first.release();
    const inTime = await clock.within(misses, TIMEOUT_MS + SLACK_MS);
    assert.ok(inTime, "some miss took longer than the timeout");
    for (const { status } of inTime) assert.equal(status, 404);
    // A request that queued too long is no failure of the upstream. One line says so.
    assert.deepEqual(cache.logged("warn").map(({ msg }) => msg), [
      "upstream too slow: queued requests time out",
    ]);

    slow.onRequest = undefined;
    const again = await Promise.all(paths.map((path) => ask(cache, path)));
    assert.equal(again.filter(({ source }) => source === "HIT").length, inFlightMax);
    assert.ok(cache.logged("info").some(({ msg }) => msg === "upstream keeps up again"));
  });
}

function logOf(index: number): string {
  return `/log/${String(index).padStart(32, "0")}-thing.drv`;
}

/** A path that nobody has. */
function missingNarinfo(index: number): string {
  return `/${String(index).padStart(32, "0")}.narinfo`;
}

async function ask(cache: TestCache, path: string) {
  const { status, headers } = await cache.get(path);
  return { status, source: headers.get("x-cache") };
}

/** Holds answers until it is released, or left. */
class Hold implements Disposable {
  readonly #released = Promise.withResolvers<undefined>();

  get released(): Promise<undefined> {
    return this.#released.promise;
  }

  release(): void {
    this.#released.resolve(undefined);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
