import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { clock } from "../../src/runtime/current.ts";
import { playRuntime } from "../../src/runtime/current.ts";
import { SYSTEM_FILES } from "../../src/runtime/files.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import {
  chunked,
  corruptByteAt,
  cutAfter,
  firstTimes,
  followedBy,
  heldUntil,
  status,
} from "../support/faults.ts";
import { wrongFileSize } from "../support/narinfo_faults.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { chain, makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const KIB = 1024;
const SIZE = 100 * KIB;

Deno.test("limit: eight clients pull five times of it, and the disk stays within", async () => {
  const objects = objectsOf(50);
  await using upstream = await fakeUpstream({ objects, stored: true });
  const limitBytes = 10 * SIZE;
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes });
  const sampled = sample(() => cache.bytesOnDisk());

  await pullAll(cache, upstream, objects);
  await cache.downloadsOver();

  const { most, samples } = await sampled.stop();
  assert.ok(samples > 20, `${samples} samples`);
  assert.ok(most <= limitBytes, `${most} bytes on disk, at most ${limitBytes}`);
  assert.ok(most > limitBytes / 2, "it is made use of");
  const { keptBytes, pendingBytes } = await cache.metadata.stock();
  assert.equal(keptBytes + pendingBytes, cache.bytesOnDisk());
});

for (const dialect of ["nixos", "attic", "harmonia"] as const) {
  Deno.test(`limit: a NAR of ${dialect} above it passes through whole`, async () => {
    const objects = [makeStoreObject({ name: "too-large", size: 3_000_000 })];
    await using upstream = await fakeUpstream({ objects, dialect, stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000_000 });
    const sampled = sample(() => cache.bytesOnDisk());

    for (const _ of [1, 2]) await pullAll(cache, upstream, objects);

    assert.ok((await sampled.stop()).most <= 1_000_000);
    assert.equal(cache.bytesOnDisk(), 0);
    assert.equal(upstream.count(/^\/nar\//), 2);
    assert.ok(cache.logged("warn").some(({ msg }) => msg === "nar not kept"));
  });
}

/** Only an upstream that hangs takes so long. */
const TIMEOUT_MS = 5_000;

/** Why nobody sends a NAR. */
const UNSENT: Readonly<Record<string, (upstream: FakeUpstream) => unknown>> = {
  "is off": (upstream) => upstream.stop(),
  "has it no more": (upstream) => upstream.breakNar(status(404)),
  "answers 500": (upstream) => upstream.breakNar(status(500)),
  "hangs": (upstream) => upstream.breakNar(heldUntil(new Promise(() => {}))),
  "sends a head alone": (upstream) => upstream.breakNar(cutAfter(0)),
  "sends another size": (upstream) => upstream.breakNar(followedBy(new Uint8Array(9))),
};

for (const [why, breakIt] of Object.entries(UNSENT)) {
  Deno.test(`limit: a NAR whose upstream ${why} makes no other go`, async () => {
    const big = makeStoreObject({ name: "big", seed: 99, size: 6 * SIZE });
    const others = objectsOf(9);
    await using upstream = await fakeUpstream({ objects: [big, ...others], stored: true });
    const limitBytes = 10 * SIZE;
    await using cache = await TestCache.open({
      upstreams: [upstream],
      limitBytes,
      timeoutMs: TIMEOUT_MS,
    });
    const path = await cache.narPath(big.storePathHash);
    await pullAll(cache, upstream, others);
    const kept = await cache.narNames();
    await breakIt(upstream);
    const answer = await cache.get(path);
    if (why === "sends another size") await assert.rejects(answer.bytes());
    else assert.equal(answer.status, 404);
    await cache.downloadsOver();
    assert.deepEqual(await cache.narNames(), kept);
    assert.equal(kept.length, 9);
  });
}

Deno.test("limit: a request to an upstream reserves no room before the response", async () => {
  const [waiting, other] = ["waiting", "other"].map((name, seed) =>
    makeStoreObject({ name, seed, size: 6 * SIZE })
  );
  assert.ok(waiting && other);
  await using upstream = await fakeUpstream({ objects: [waiting, other], stored: true });
  const answer = Promise.withResolvers<void>();
  upstream.breakNar(heldUntil(answer.promise), waiting);
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 10 * SIZE });
  const path = await cache.narPath(waiting.storePathHash);
  const asked = cache.get(path);
  await upstream.requested(/^\/nar\//);
  assert.equal(cache.space.budget.reservedBytes, 0);
  await (await cache.get(await cache.narPath(other.storePathHash))).bytes();
  answer.resolve();
  await (await asked).bytes();
  await cache.downloadsOver();
  assert.equal((await cache.narNames()).length, 1);
  assert.ok(cache.bytesOnDisk() <= 10 * SIZE);
});

Deno.test("limit: a NAR of unknown size outgrows it, and arrives whole", async () => {
  const objects = [makeStoreObject({ name: "grows", size: 5_000_000 })];
  await using upstream = await fakeUpstream({ objects, dialect: "attic", stored: true });
  upstream.breakNar(chunked());
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 3_000_000 });
  const sampled = sample(() => cache.growingBytes());

  await pullAll(cache, upstream, objects);
  await cache.downloadsOver();

  const { most } = await sampled.stop();
  assert.ok(most > 1_000_000 && most <= 3_000_000, `${most} bytes`);
  assert.equal(cache.bytesOnDisk(), 0);
  assert.equal(cache.space.budget.reservedBytes, 0);
});

Deno.test("limit: a pass-through is checked: a wrong file never arrives whole", async () => {
  const objects = [makeStoreObject({ name: "wrong", size: 3_000_000 })];
  for (const dialect of ["nixos", "attic"] as const) {
    await using upstream = await fakeUpstream({ objects, dialect, stored: true });
    upstream.breakNar(corruptByteAt(1_000_000));
    await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000_000 });
    const path = await cache.narPath(objects[0]?.storePathHash ?? "");
    await assert.rejects(async () => await (await cache.get(path)).bytes());
  }
});

Deno.test("limit: after a wrong pass-through, a request goes to another upstream", async () => {
  const objects = [makeStoreObject({ name: "wrong", size: 3_000_000 })];
  await using bad = await fakeUpstream({ objects, priority: 10, stored: true });
  await using good = await fakeUpstream({ objects, priority: 20, stored: true });
  bad.breakNar(corruptByteAt(1_000_000));
  await using cache = await TestCache.open({ upstreams: [bad, good], limitBytes: 1_000_000 });
  const path = await cache.narPath(objects[0]?.storePathHash ?? "");
  await assert.rejects(async () => await (await cache.get(path)).bytes());
  await pullAll(cache, good, objects);
});

Deno.test("limit: a file whose size lied is fetched again, kept or not", async () => {
  const objects = [makeStoreObject({ name: "lied-about", size: 3_000_000 })];
  await using upstream = await fakeUpstream({ objects, stored: true });
  upstream.breakNarinfo(firstTimes(1, wrongFileSize(1)));
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000_000 });
  for (const _ of [1, 2]) await pullAll(cache, upstream, objects);
});

Deno.test("limit: a client that leaves before it reads ends its pass-through", async () => {
  const objects = [makeStoreObject({ name: "left", size: 30_000_000 })];
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000_000 });
  const answer = await cache.get(await cache.narPath(objects[0]?.storePathHash ?? ""));
  await answer.body?.cancel();
  const [exchange] = upstream.matching(/^\/nar\//);
  assert.ok(exchange);
  assert.equal(await clock.within(exchange.finished, 60_000), "left");
});

Deno.test("limit: a pass-through that breaks off is resumed", async () => {
  const objects = [makeStoreObject({ name: "breaks", size: 3_000_000 })];
  await using upstream = await fakeUpstream({ objects, stored: true });
  upstream.breakNar(cutAfter(1_000_000));
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000_000 });
  const path = await cache.narPath(objects[0]?.storePathHash ?? "");
  const answer = await cache.get(path);
  const reader = answer.body?.getReader();
  const first = await reader?.read();
  upstream.mend();
  const rest: Bytes[] = [first?.value ?? new Uint8Array()];
  for (let piece = await reader?.read(); piece?.value; piece = await reader?.read()) {
    rest.push(piece.value);
  }
  const [object] = objects;
  assert.ok(object);
  assertSameBytes(await new Blob(rest).bytes(), (await upstream.narFileOf(object)).bytes);
});

Deno.test("limit: ranges of a NAR that is not kept are those of the file", async () => {
  const object = makeStoreObject({ name: "ranged", size: 3_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000_000 });
  const path = await cache.narPath(object.storePathHash);
  const { bytes } = await upstream.narFileOf(object);
  const size = bytes.length;
  const ranges = [[0, 9], [100_000, 2_000_000], [size - 10, size - 1], [2_500_000, size - 1]];
  for (const [start = 0, last = 0] of ranges) {
    const answer = await cache.get(path, { range: `bytes=${start}-${last}` });
    assert.equal(answer.status, 206);
    assert.equal(answer.headers.get("content-range"), `bytes ${start}-${last}/${size}`);
    assertSameBytes(await answer.bytes(), bytes.slice(start, last + 1));
  }
});

Deno.test("limit: a pinned closure stays, later paths included, until it is unpinned", async () => {
  const closure = chain(6);
  const root = closure.at(-1)?.storePathHash ?? "";
  const others = objectsOf(30);
  await using upstream = await fakeUpstream({ objects: [...closure, ...others], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 6 * SIZE });
  const late = closure.slice(0, 2);
  await pullAll(cache, upstream, closure.slice(2));
  assert.equal((await cache.request("POST", `/pin/${root}.narinfo`)).status, 200);
  await pullAll(cache, upstream, late);

  await pullAll(cache, upstream, others);
  await upstream.stop();

  for (const { storePathHash } of closure) {
    const answer = await cache.get(await cache.narPath(storePathHash));
    assert.equal(answer.headers.get("x-cache"), "HIT");
    await answer.bytes();
  }
  await upstream.start();
  assert.equal((await cache.request("DELETE", `/pin/${root}.narinfo`)).status, 200);
  await pullAll(cache, upstream, others);
  await pullAll(cache, upstream, others.slice(0, 10));
  for (const { storePathHash } of closure) {
    assert.equal(await cache.metadata.findNarinfo(storePathHash), undefined);
  }
});

Deno.test("limit: the paths used last stay", async () => {
  const objects = objectsOf(8);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 5 * SIZE });
  const [first, ...rest] = objects;
  assert.ok(first);
  for (const object of [first, ...rest.slice(0, 3)]) await pullAll(cache, upstream, [object]);
  await cache.narinfo(first.storePathHash);
  for (const object of rest.slice(3)) {
    await pullAll(cache, upstream, [object]);
    await cache.narinfo(first.storePathHash);
  }
  assert.ok(await cache.metadata.findNarinfo(first.storePathHash));
  const second = rest[0]?.storePathHash;
  assert.ok(second);
  assert.equal(await cache.metadata.findNarinfo(second), undefined);
});

Deno.test("limit: a NAR with a reader stays, and goes when the reader has gone", async () => {
  const slow = makeStoreObject({ name: "slow", seed: 99, size: 20_000_000 });
  const others = Array.from({ length: 4 }, (_, seed) => (
    makeStoreObject({ name: "big", seed: seed + 1, size: 4_000_000 })
  ));
  await using upstream = await fakeUpstream({ objects: [slow, ...others], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 30_000_000 });
  await using server = cache.listen();
  await pullAll(cache, upstream, [slow]);
  const path = await cache.narPath(slow.storePathHash);
  {
    // More than the buffers of a connection hold: the rest waits for the client.
    await using connection = await RawConnection.open(server.port);
    await connection.send(requestText("GET", path));
    assert.equal((await connection.answer()).status, 200);
    for (const other of others) await pullAll(cache, upstream, [other]);
    assert.ok(await cache.metadata.findNarinfo(slow.storePathHash));
  }
  await eventually("the reader has gone", () => cache.beingRead.size === 0);
  await pullAll(cache, upstream, others);
  assert.equal(await cache.metadata.findNarinfo(slow.storePathHash), undefined);
});

Deno.test("limit: a full disk is no reason to fail: readers get all, nothing is kept", async () => {
  const object = makeStoreObject({ name: "no-disk", size: 3_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  // Every write to it fails as on a full disk.
  await using cache = await TestCache.open({
    upstreams: [upstream],
    spool: { path: "/dev/full/x" },
  });
  await pullAll(cache, upstream, [object]);
  await eventually(
    "it is said",
    () => cache.logged("error").some(({ msg }) => msg.startsWith("nars cannot be kept")),
  );
  assert.equal(cache.bytesOnDisk(), 0);
});

Deno.test("limit: a file that cannot be opened is not left behind, nor counted", async () => {
  const object = makeStoreObject({ name: "no-descriptor", size: 1_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const openSync: typeof SYSTEM_FILES.openSync = (path, options) => {
    if (path.endsWith(".part")) throw new Error("Too many open files (os error 24)");
    return SYSTEM_FILES.openSync(path, options);
  };
  {
    using _files = playRuntime({ files: { ...SYSTEM_FILES, openSync } });
    await pullAll(cache, upstream, [object]);
  }
  assert.deepEqual(cache.growingFiles(), []);
});

function objectsOf(count: number): readonly StoreObject[] {
  return Array.from({ length: count }, (_, seed) => (
    makeStoreObject({ name: "thing", seed: seed + 1, size: SIZE - 2 * KIB })
  ));
}

/** Eight clients pull everything, and get the bytes of the upstream. */
async function pullAll(
  cache: TestCache,
  upstream: FakeUpstream,
  objects: readonly StoreObject[],
): Promise<void> {
  const waiting = [...objects];
  const client = async () => {
    for (let object = waiting.shift(); object !== undefined; object = waiting.shift()) {
      const answer = await cache.get(await cache.narPath(object.storePathHash));
      assert.equal(answer.status, 200);
      assertSameBytes(await answer.bytes(), (await upstream.narFileOf(object)).bytes);
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  await cache.downloadsOver();
}

/** Looks at the files again and again, until it is stopped. */
function sample(bytes: () => number) {
  let [most, samples, going] = [0, 0, true];
  const sampling = (async () => {
    while (going) {
      most = Math.max(most, bytes());
      samples++;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  return {
    async stop() {
      going = false;
      await sampling;
      return { most, samples };
    },
  };
}
