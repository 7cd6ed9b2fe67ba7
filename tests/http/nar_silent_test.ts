import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { firstTimes, stallAfter } from "../support/faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "big-1.0", size: 100_000 });
const HASH = object.storePathHash;
const stored = { objects: [object], stored: true } as const;
/** Too few to bring a file anywhere. */
const FEW_BYTES = 1_000;

/** A limit that leaves no room has the NAR passed through without being kept. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [way, limitBytes] of Object.entries(WAYS)) {
  Deno.test(`silent: ${way}, one that stalls after a few bytes gives way to the next`, async () => {
    await using silent = await fakeUpstream({ ...stored, priority: 10 });
    await using good = await fakeUpstream({ ...stored, priority: 20 });
    silent.breakNar(stallAfter(FEW_BYTES));
    const { bytes } = await good.narFileOf(object);

    const answer = await fetched([silent, good], limitBytes);

    assert.ok(answer.complete && Buffer.compare(answer.body, bytes) === 0);
    assert.deepEqual(narRequests(silent), [null]);
    assert.deepEqual(narRequests(good), [`bytes=${FEW_BYTES}-`]);
  });

  Deno.test(`silent: ${way}, the only one gets another request after a stall`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNar(firstTimes(1, stallAfter(FEW_BYTES)));
    const { bytes } = await upstream.narFileOf(object);

    const answer = await fetched([upstream], limitBytes);

    assert.ok(answer.complete && Buffer.compare(answer.body, bytes) === 0);
    assert.deepEqual(narRequests(upstream), [null, `bytes=${FEW_BYTES}-`]);
  });

  Deno.test(`silent: ${way}, the only one is given up at its second stall in a row`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNar(stallAfter(FEW_BYTES));

    const answer = await fetched([upstream], limitBytes);

    assert.ok(answer.status === 404 || !answer.complete);
    assert.deepEqual(narRequests(upstream), [null, `bytes=${FEW_BYTES}-`]);
  });
}

async function fetched(upstreams: readonly FakeUpstream[], limitBytes: number) {
  await using cache = await TestCache.open({ upstreams, limitBytes, idleTimeoutMs: 300 });
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  return await rawRequest(server.port, requestText("GET", path));
}

/** The range of each request for the NAR. */
function narRequests(upstream: FakeUpstream): readonly (string | null)[] {
  return upstream.matching(/^\/nar\//).map(({ headers }) => headers.get("range"));
}
