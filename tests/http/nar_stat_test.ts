import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { type Fault, status } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import type { Answer } from "../support/wire_answer.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 5_000 });
const NAR = /^\/nar\//;

const REFUSALS: readonly (readonly [what: string, fault: Fault])[] = [
  ["405", status(405)],
  ["a length of 0", empty],
];

for (const [what, fault] of REFUSALS) {
  Deno.test(`NAR's size: if an upstream answers HEAD with ${what}, a GET gives it`, async () => {
    await using upstream = await attic();
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const path = await cache.narPath(object.storePathHash);
    upstream.breakNar((answer, exchange) =>
      exchange.method === "HEAD" ? fault(answer, exchange) : sized(answer)
    );
    const { status, headers } = await cache.head(path);
    const { bytes } = await upstream.narFileOf(object);
    assert.deepEqual([status, headers.get("content-length")], [200, `${bytes.length}`]);
    assert.equal(upstream.count(NAR, "GET"), 1);
  });
}

Deno.test("NAR's size: a length of 0 in answer to GET, too, leaves it unknown", async () => {
  await using upstream = await attic();
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  upstream.breakNar(empty);
  const { status, headers } = await cache.head(path);
  assert.deepEqual([status, headers.get("content-length")], [200, null]);
});

/** Its narinfos do not tell the size of a NAR's file. */
function attic(): Promise<FakeUpstream> {
  return fakeUpstream({ dialect: "attic", objects: [object], stored: true });
}

function empty(answer: Answer): Answer {
  return { ...answer, framing: 0, body: new Uint8Array(0) };
}

function sized(answer: Answer): Answer {
  assert.ok(answer.body instanceof Uint8Array);
  return { ...answer, framing: answer.body.length };
}
