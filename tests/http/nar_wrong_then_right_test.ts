import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import {
  corruptByteAt,
  cutAfter,
  endAfter,
  type Fault,
  fileFault,
  inOrder,
} from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const small = makeStoreObject({ name: "small-1.0", size: 100_000 });
/** With its NAR the threads start, which may take longer than a client waits for a small one. */
const first = makeStoreObject({ name: "first-1.0" });
const large = makeStoreObject({ name: "large-1.0", size: 3_000_000 });

/** A limit that leaves no room has the NAR passed through. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

/** With a file hash, without one, and uncompressed. */
const DIALECTS = ["nixos", "attic", "nix-serve"] as const;

const wrong = corruptByteAt(50_000);

for (const [way, limitBytes] of Object.entries(WAYS)) {
  for (const dialect of DIALECTS) {
    Deno.test(`wrong: ${way} (${dialect}), a small NAR is right the first time`, async () => {
      const { statuses, counts } = await requested([wrong, undefined], { dialect, limitBytes });
      assert.deepEqual(statuses, [200]);
      assert.deepEqual(counts, [1, 1]);
    });

    Deno.test(`wrong: ${way} (${dialect}), where all are wrong it is 404`, async () => {
      const { statuses, counts } = await requested([wrong, wrong], { dialect, limitBytes });
      assert.deepEqual(statuses, [404]);
      assert.deepEqual(counts, [1, 1]);
    });
  }

  Deno.test(`wrong: ${way}, a request goes to the third upstream if two are wrong`, async () => {
    const { statuses, counts } = await requested([wrong, wrong, undefined], { limitBytes });
    assert.deepEqual(statuses, [200]);
    assert.deepEqual(counts, [1, 1, 1]);
  });

  Deno.test(`wrong: ${way}, all clients that wait get the right NAR`, async () => {
    const { statuses } = await requested([wrong, undefined], { limitBytes, clients: 5 });
    assert.deepEqual(statuses, Array(5).fill(200));
  });

  Deno.test(`wrong: ${way}, a wrong start with a right rest is fetched anew`, async () => {
    const cutWrong = inOrder(corruptByteAt(10), fileFault(cutAfter, 50_000));
    const { statuses } = await requested([cutWrong, undefined], { limitBytes });
    assert.deepEqual(statuses, [200]);
  });

  Deno.test(`wrong: ${way}, a large NAR breaks`, async () => {
    const faults = [corruptByteAt(1_000_000), undefined];
    const { statuses } = await requested(faults, { limitBytes, object: large });
    assert.deepEqual(statuses, ["broken"]);
  });
}

const EDGE_BYTES = 512 * 1024;
const [least, more] = [0, 8].map((beyond) => {
  const size = EDGE_BYTES - makeStoreObject({ name: "edge-1.0", size: 8 }).narSize + 8;
  return makeStoreObject({ name: "edge-1.0", size: size + beyond });
});

for (const [way, limitBytes] of Object.entries(WAYS)) {
  Deno.test(`wrong: ${way}, a NAR file of 512 KiB is small, and none above it`, async () => {
    assert.ok(least && more);
    assert.deepEqual([least.narSize, more.narSize], [EDGE_BYTES, EDGE_BYTES + 8]);
    const options = { limitBytes, dialect: "nix-serve" } as const;
    const whole = await requested([wrong, undefined], { ...options, object: least });
    assert.deepEqual(whole.statuses, [200]);
    const { statuses } = await requested([wrong, undefined], { ...options, object: more });
    assert.deepEqual(statuses, ["broken"]);
  });
}

Deno.test("wrong: an upstream that then has nothing of use gets no more requests", async () => {
  const { statuses, counts } = await requested([wrong, endAfter(10)], {});
  assert.deepEqual(statuses, [404]);
  assert.equal(counts[0], 1);
});

interface Options {
  readonly dialect?: typeof DIALECTS[number];
  readonly limitBytes?: number;
  readonly clients?: number;
  readonly object?: typeof small;
}

/** Asks for the NAR where each upstream in order of preference has its fault. */
async function requested(
  faults: readonly (Fault | undefined)[],
  { dialect = "nixos", limitBytes = Infinity, clients = 1, object = small }: Options,
) {
  await using stack = new AsyncDisposableStack();
  const upstreams: FakeUpstream[] = [];
  for (const [index, fault] of faults.entries()) {
    const options = { dialect, objects: [object, first], stored: true, priority: 10 + index };
    const upstream = stack.use(await fakeUpstream(options));
    if (fault !== undefined) upstream.breakNar(fault, object);
    upstreams.push(upstream);
  }
  const cache = stack.use(await TestCache.open({ upstreams, limitBytes, idleTimeoutMs: 500 }));
  await (await cache.get(await cache.narPath(first.storePathHash))).bytes();
  await cache.downloadsOver();
  const before = upstreams.map((upstream) => upstream.count(/\/nar\//));
  const path = await cache.narPath(object.storePathHash);
  const expected = (await upstreams[0]?.narFileOf(object))?.bytes;
  const statuses = await Promise.all(Array.from({ length: clients }, async () => {
    const answer = await cache.get(path);
    try {
      const body = await answer.bytes();
      if (answer.status === 200) assert.deepEqual(body, expected);
      return answer.status;
    } catch {
      return "broken";
    }
  }));
  await cache.downloadsOver();
  assert.deepEqual(cache.growingFiles(), []);
  const counts = upstreams.map((upstream, index) =>
    upstream.count(/\/nar\//) - (before[index] ?? 0)
  );
  return { statuses, counts };
}
