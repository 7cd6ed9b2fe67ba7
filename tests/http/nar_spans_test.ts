import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 1_000_000 });
const HASH = object.storePathHash;

Deno.test("nar spans: waiting for a NAR that turns out not to be kept is no error", async () => {
  for (const hasFolder of [true, false]) {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    const { tracer, ...spans } = new RecordedSpans();
    await using cache = await TestCache.open({ upstreams: [upstream], tracer, limitBytes: 1_000 });
    const path = await cache.narPath(HASH);
    if (!hasFolder) Deno.removeSync(cache.tempPath, { recursive: true });
    const { length } = await (await cache.get(path)).bytes();
    assert.equal(length, (await upstream.narFileOf(object)).bytes.length);
    const errors = spans.list.filter(({ error }) => error !== undefined);
    assert.deepEqual(errors.map(({ name, error }) => [name, error]), []);
  }
});
