import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { PushFailed, pushLikeNix } from "../support/pusher.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { isInBucket } from "../support/shared_servers.ts";
import { silenceMembers } from "../support/silenced_members.ts";
import { accountsOf, filesBelow, narBytesIn, narFilesIn } from "../support/storage_look.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { type Push, pushOf } from "../support/uploading.ts";

const token = "a-write-token-of-some-length";
const FLAGS: LarderFlags = {
  "cache-upstream-url": "http://127.0.0.1:9",
  "cache-allow-put-verb": "true",
  "cache-put-token": token,
};

Deno.test("upload: 50 push overlapping closures at once, and each is there whole", async () => {
  await using larder = await startLarder(FLAGS);
  const layers = await layered([20, 20, 20]);
  const closures = Array.from({ length: 50 }, (_, at) => closureOf(layers, at));
  await Promise.all(closures.map((closure) => pushLikeNix(larder.url, closure, { token })));

  const pushed = new Set(closures.flat());
  for (const { object } of pushed) await isServedWhole(larder, object);
  assert.equal(accountsOf(larder.storage).narinfos.size, pushed.size);
  await settles(larder);
});

Deno.test("upload: ten push against a limit that holds two, never above it", async () => {
  const limitBytes = 2_300_000;
  await using larder = await startLarder({ ...FLAGS, "cache-max-size": `${limitBytes}B` });
  const pushes = await Promise.all(
    Array.from({ length: 10 }, (_, seed) => {
      return pushOf(makeStoreObject({ name: "large", size: 1_000_000, seed }));
    }),
  );
  let [isOver, peakBytes] = [false, 0];
  const watching = eventually("the pushes are over", () => {
    peakBytes = Math.max(peakBytes, narBytesIn(larder.storage));
    return isOver;
  });
  const ends = await Promise.all(pushes.map((one) => endOf(larder, [one])));
  isOver = true;
  await watching;

  assert.ok(peakBytes <= limitBytes, `${peakBytes} bytes at the peak`);
  for (const end of ends) assert.ok(end === "stored" || end === 507 || end === 422, String(end));
  assert.ok(ends.filter((end) => end === "stored").length >= 2, ends.join());
  const { narinfos } = accountsOf(larder.storage);
  // A bucket has its room a grace time after the eviction: the last push may be gone by then.
  const leastStored = isInBucket(larder.storage) ? 1 : 2;
  assert.ok(narinfos.size >= leastStored && narinfos.size <= 2, `${narinfos.size} are stored`);
  for (const { object } of pushes) {
    if (narinfos.has(object.storePathHash)) await isServedWhole(larder, object);
  }
  await settles(larder);
});

Deno.test("upload: evictions during pushes leave no path without its NAR", async () => {
  await using larder = await startLarder(FLAGS);
  const layers = await layered([10, 10, 10]);
  let isOver = false;
  const evicting = (async () => {
    let runs = 0;
    for (; !isOver; runs++) {
      const answer = await fetch(`${larder.url}/gc?target=300000`, { method: "POST" });
      assert.match(await answer.text(), /"done"/);
    }
    return runs;
  })();
  const ends = await Promise.all(
    Array.from({ length: 20 }, (_, at) => endOf(larder, closureOf(layers, at))),
  );
  isOver = true;
  assert.ok(await evicting > 1);

  // If an eviction took a path before its referrer came, the referrer lacks it, and no more.
  for (const end of ends) assert.ok(end === "stored" || end === 404 || end === 422, String(end));
  const { narinfos } = accountsOf(larder.storage);
  for (const { object } of layers.flat()) {
    if (narinfos.has(object.storePathHash)) await isServedWhole(larder, object);
  }
  await settles(larder);
});

Deno.test("upload: killed during pushes, paths are whole or absent after each start", async () => {
  using storage = tempFolder();
  const flags = { ...FLAGS, "cache-storage-local": storage.path };
  const layers = await layered([8, 8, 8]);
  const all = layers.flat();
  for (let kill = 1; kill <= 4; kill++) {
    await using larder = await startLarder(flags);
    const ends = Promise.all(
      Array.from({ length: 8 }, (_, at) => {
        return pushLikeNix(larder.url, closureOf(layers, at), { token, attemptsMax: 1 })
          .catch(() => undefined);
      }),
    );
    const before = narFilesIn(storage.path).size;
    await eventually("pushes come in", () => {
      return narFilesIn(storage.path).size >= Math.min(before + kill, all.length);
    });
    larder.kill("SIGKILL");
    await Promise.all([ends, larder.ended]);
    silenceMembers(storage.path);
    await using next = await startLarder(flags);
    await next.logged("reconciled");
    const { narinfos } = accountsOf(storage.path);
    for (const { object } of all) {
      if (narinfos.has(object.storePathHash)) await isServedWhole(next, object);
    }
    await settles(next);
  }
  await using larder = await startLarder(flags);
  await pushLikeNix(larder.url, all, { token });
  for (const { object } of all) await isServedWhole(larder, object);
});

/** Layers of objects, each of which refers to some of the layer below. */
async function layered(counts: readonly number[]): Promise<readonly (readonly Push[])[]> {
  const layers: Push[][] = [];
  for (const [depth, count] of counts.entries()) {
    const below = layers.at(-1) ?? [];
    layers.push(
      await Promise.all(Array.from({ length: count }, (_, at) => {
        const references = below.filter((_, index) =>
          index % count === at || (index + 3) % 5 === at
        )
          .map(({ object }) => object);
        const size = 2_000 + 9_000 * ((at + depth) % 20);
        const seed = 100 * depth + at;
        return pushOf(makeStoreObject({ name: `layer-${depth}`, size, seed, references }));
      })),
    );
  }
  return layers;
}

/** All that one object of the top layer needs, leaf first. */
function closureOf(layers: readonly (readonly Push[])[], at: number): readonly Push[] {
  const top = layers.at(-1)?.[at % (layers.at(-1)?.length ?? 1)];
  const wanted = new Set([top?.object.baseName]);
  for (const push of layers.toReversed().flat()) {
    if (!wanted.has(push.object.baseName)) continue;
    for (const reference of push.object.references) wanted.add(reference);
  }
  return layers.flat().filter(({ object }) => wanted.has(object.baseName));
}

async function endOf(larder: LarderProcess, closure: readonly Push[]): Promise<"stored" | number> {
  try {
    await pushLikeNix(larder.url, closure, { token });
    return "stored";
  } catch (error) {
    if (error instanceof PushFailed) return error.status;
    throw error;
  }
}

async function isServedWhole({ port }: LarderProcess, object: StoreObject): Promise<void> {
  const narinfo = await servedNarinfo(port, object.storePathHash);
  const { status } = await servedNar(port, narinfo);
  assert.equal(status, 200, object.storePath);
}

/** Resolves once no file is in flight. Fails unless the counted bytes are those in the storage. */
async function settles({ storage }: LarderProcess): Promise<void> {
  await eventually("no file is in flight", () => {
    return accountsOf(storage).pending.length === 0 && filesBelow(`${storage}/tmp`).size === 0;
  });
  assert.equal(accountsOf(storage).countedBytes, narBytesIn(storage));
}
