import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const PATH = `/${object.storePathHash}.narinfo`;

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
