import assert from "node:assert/strict";
import { NO_OTHER_MEMBERS } from "../../src/locks/work_leases.ts";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { playRuntime } from "../../src/runtime/current.ts";
import { SystemClock, type Timer } from "../../src/runtime/clock.ts";
import { available } from "../support/compressors.ts";
import { decompress } from "../support/decompressors.ts";
import type { Dialect } from "../support/dialects.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { corruptByteAt, Gate } from "../support/faults.ts";
import { testUnless } from "../support/program.ts";
import { recompressed } from "../support/recompressed.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { readStats } from "../support/stats_of.ts";
import { StubEncoder } from "../support/stub_encoder.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";
import { ALLOWED, push, pushOf, WRITE_TOKEN } from "../support/uploading.ts";

const HOUR_MS = 3_600_000;
/** Between two looks at whether larder is idle. */
const IDLE_EVERY_MS = 1_000;
/** From the start to the first count. */
const FIRST_COUNT_MS = 3_000;
const object = makeStoreObject({ name: "thing-1.0", size: 700_000 });
const { storePathHash } = object;

interface WorldOptions extends Partial<TestCacheOptions> {
  readonly compression?: Compression;
  readonly dialect?: Dialect;
  readonly objects?: readonly StoreObject[];
}

/** A larder that recompresses, and its clock. */
async function worldOf(
  { compression = "xz", dialect = "nixos", objects = [object], ...options }: WorldOptions = {},
) {
  const scope = new AsyncDisposableStack();
  const time = { nowMs: Date.now() };
  const encoder = new StubEncoder();
  const upstream = scope.use(await fakeUpstream({ objects, compression, dialect, stored: true }));
  const cache = scope.use(
    await TestCache.open({
      upstreams: [upstream],
      recompress: { level: 9, encoder },
      nowMs: () => time.nowMs,
      ...options,
    }),
  );
  const pull = async ({ storePathHash }: StoreObject) => {
    const path = await cache.narPath(storePathHash);
    const bytes = await (await cache.get(path)).bytes();
    await cache.downloadsOver();
    return { path, bytes };
  };
  const keptOf = async ({ storePathHash }: StoreObject) => {
    const row = await cache.metadata.findNarinfo(storePathHash);
    return row && (await cache.metadata.findNar(row.narName))?.kept;
  };
  return {
    ...{ cache, upstream, encoder, time, pull, keptOf },
    formOf: async (one: StoreObject) => (await keptOf(one))?.form,
    [Symbol.asyncDispose]: () => scope.disposeAsync(),
  };
}

/** Counts how often recompression finds larder busy. It looks again at once, not in a second. */
class IdleLooks extends SystemClock implements Disposable {
  readonly #several = Promise.withResolvers<void>();
  readonly #played = playRuntime({ clock: this });
  #count = 0;

  /** Resolves once it has found that three times. */
  get several(): Promise<void> {
    return this.#several.promise;
  }

  override pause(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms !== IDLE_EVERY_MS) return super.pause(ms, signal);
    if (++this.#count === 3) this.#several.resolve();
    return super.pause(0, signal);
  }

  [Symbol.dispose](): void {
    this.#played[Symbol.dispose]();
  }
}

for (const compression of ["xz", "none", "gzip", "bzip2"] as const) {
  testUnless(
    available(compression),
    `recompression: a NAR in ${compression} is kept in zstd, and in nothing else`,
    async () => {
      await using world = await worldOf({ compression });
      const { cache, encoder } = world;
      const { path } = await world.pull(object);

      await cache.recompress();

      const kept = await world.keptOf(object);
      assert.equal(kept?.form, "zstd");
      const text = await cache.narinfo(storePathHash);
      assert.match(text, /^Compression: zstd$/m);
      assert.ok(text.includes(`FileHash: sha256:${kept.fileHash}\nFileSize: ${kept.fileSize}\n`));
      const zstd = await (await cache.get(await cache.narPath(storePathHash))).bytes();
      assert.equal(zstd.length, kept.fileSize);
      assertSameBytes(await decompress(zstd, "zstd"), object.nar);
      assertSameBytes(
        await decompress(await (await cache.get(path)).bytes(), compression),
        object.nar,
      );
      assert.deepEqual(await Array.fromAsync(cache.nars.list(""), ({ at }) => at), [kept.at]);
      assert.deepEqual(cache.growingFiles(), []);
      assert.deepEqual(await cache.metadata.pendingFiles(), []);
      assert.equal(cache.bytesOnDisk(), kept.fileSize);
      assert.ok(await cache.metadata.areSumsRight());
      await cache.recompress();
      assert.equal(encoder.orders.length, 1, "once");
      const metrics = await (await cache.get("/metrics")).text();
      assert.match(metrics, /^larder_recompressed_nars_total\{result="replaced"\} 1$/m);
      assert.ok(
        metrics.includes(`larder_recompressed_bytes_total{form="zstd"} ${kept.fileSize}\n`),
      );
    },
  );
}

Deno.test("recompression: a NAR in zstd stays as it came", async () => {
  await using world = await worldOf({ compression: "zstd" });
  await world.pull(object);
  await world.cache.recompress();
  assert.equal(await world.formOf(object), undefined);
  assert.equal(world.encoder.orders.length, 0);
});

Deno.test("recompression: a NAR that was checked since the last look is not decoded again", async () => {
  await using world = await worldOf();
  await world.pull(object);
  await world.cache.recompress();
  assert.deepEqual(world.encoder.orders.map(({ compression }) => compression), ["none"]);
  assert.equal(await world.formOf(object), "zstd");
  const zstd = await (await world.cache.get(await world.cache.narPath(storePathHash))).bytes();
  assertSameBytes(await decompress(zstd, "zstd"), object.nar);
});

Deno.test("recompression: a checked NAR is in memory up to the end of the next look", async () => {
  await using world = await worldOf();
  await world.pull(object);
  const kept = await world.keptOf(object);
  assert.ok(kept);
  await world.cache.metadata.apply([{ kind: "nar-broken", at: kept.at, atMs: world.time.nowMs }]);
  await world.cache.recompress();
  world.time.nowMs += 2 * HOUR_MS;
  await world.cache.recompress();
  assert.deepEqual(world.encoder.orders.map(({ compression }) => compression), ["xz"]);
});

Deno.test("recompression: of checked NARs, 16 MiB are in memory, and no wrong one", async () => {
  const [wrong, first, second] = [1, 2, 3].map((seed) =>
    makeStoreObject({ name: `large-${seed}`, size: 12_000_000, seed })
  );
  assert.ok(wrong && first && second);
  // Without a file hash its check decodes the wrong file, too.
  await using world = await worldOf({ objects: [wrong, first, second], dialect: "attic" });
  world.upstream.breakNar(corruptByteAt(6_000_000), wrong);
  const path = await world.cache.narPath(wrong.storePathHash);
  await (await world.cache.get(path)).bytes().catch(() => "broken off");
  await world.cache.downloadsOver();
  for (const one of [first, second]) await world.pull(one);

  await world.cache.recompress();

  assert.deepEqual(await Promise.all([wrong, first, second].map(world.formOf)), [
    undefined,
    "zstd",
    "zstd",
  ]);
  // The newest use comes first.
  assert.deepEqual(world.encoder.orders.map(({ compression }) => compression), ["xz", "none"]);
});

for (const compression of Object.keys(COMPRESSIONS) as Compression[]) {
  testUnless(
    available(compression),
    `recompression: a NAR that was uploaded in ${compression} ends in zstd, and its name still gets it`,
    async () => {
      await using world = await worldOf({ uploads: ALLOWED, tokens: [WRITE_TOKEN] });
      const { cache } = world;
      const pushed = makeStoreObject({ name: "pushed-1.0", size: 90_000 });
      assert.deepEqual(await push(cache, await pushOf(pushed, { compression })), [201, 201]);
      const { path } = await world.pull(pushed);
      await cache.recompress();
      assert.equal(await world.formOf(pushed), compression === "zstd" ? undefined : "zstd");
      const bytes = await (await cache.get(path)).bytes();
      assertSameBytes(await decompress(bytes, compression), pushed.nar);
    },
  );
}

Deno.test("recompression: the newest use comes first", async () => {
  const objects = ["a", "b", "c"].map((name, seed) =>
    makeStoreObject({ name: `${name}-1.0`, size: 900, seed })
  );
  await using world = await worldOf({ objects });
  const [a, b, c] = objects;
  assert.ok(a && b && c);
  for (const one of [b, c, a]) {
    world.time.nowMs += 60_000;
    await world.pull(one);
  }
  await world.cache.metadata.apply([
    { kind: "touch-narinfo", storePathHash: c.storePathHash, atMs: world.time.nowMs + 1_000 },
  ]);
  await world.cache.recompress();
  const names = world.encoder.orders.map(({ path }) => path.split("/").at(-1)?.slice(0, 52));
  const nameOf = async ({ storePathHash }: StoreObject) =>
    (await world.cache.metadata.findNarinfo(storePathHash))?.narName.slice(0, 52);
  assert.deepEqual(names, await Promise.all([c, a, b].map(nameOf)));
});

Deno.test("recompression: the files that are left, and the bytes in zstd, are counted", async () => {
  const objects = ["a", "b", "c"].map((name, seed) =>
    makeStoreObject({ name: `${name}-1.0`, size: 900, seed })
  );
  await using world = await worldOf({ objects });
  const counted = async () => {
    const metrics = await (await world.cache.get("/metrics")).text();
    return ["recompress_backlog_files", "recompressed_kept_bytes"]
      .map((name) => Number(new RegExp(`^larder_${name} (.*)$`, "m").exec(metrics)?.[1]));
  };
  for (const one of objects) await world.pull(one);
  world.encoder.fault = corrupted;
  await world.cache.recompress();
  assert.deepEqual(await counted(), [3, 0]);
  world.encoder.fault = (file) => file;
  world.time.nowMs += 2 * HOUR_MS;
  await world.cache.recompress();
  const kept = await Promise.all(objects.map(world.keptOf));
  const bytes = kept.reduce((sum, one) => sum + (one?.fileSize ?? 0), 0);
  assert.deepEqual(await counted(), [0, bytes]);
  const { size } = await readStats(await world.cache.get("/stats"));
  assert.equal(size.recompressed_bytes, bytes);
});

/** Counts at once after a start, and runs nothing by itself. */
class FirstCountSoon extends SystemClock implements Disposable {
  readonly #played = playRuntime({ clock: this });

  override after(ms: number, due: () => void, holdsProcess?: boolean): Timer {
    return super.after(ms === FIRST_COUNT_MS ? 0 : ms, due, holdsProcess);
  }

  override every(ms: number, beat: () => void, holdsProcess?: boolean): Timer {
    return super.every(60 * ms, beat, holdsProcess);
  }

  [Symbol.dispose](): void {
    this.#played[Symbol.dispose]();
  }
}

Deno.test("recompression: the bytes in zstd are known seconds after a start, before any run", async () => {
  await using world = await worldOf();
  await world.pull(object);
  await world.cache.recompress();
  const { metadata, nars } = world.cache;
  const bytes = (await world.keptOf(object))?.fileSize;
  using _clock = new FirstCountSoon();
  await using again = await worldOf({ metadata, nars });
  await eventually("the bytes are counted", async () => {
    const { size } = await readStats(await again.cache.get("/stats"));
    return size.recompressed_bytes === bytes;
  });
});

Deno.test("recompression: a file that a client got in part stays for an hour", async () => {
  await using world = await worldOf();
  const { cache, time } = world;
  await world.pull(object);
  const kept = await world.keptOf(object);
  assert.ok(kept);
  await cache.metadata.apply([{ kind: "nar-broken", at: kept.at, atMs: time.nowMs }]);
  for (const [passedMs, form] of [[0, undefined], [HOUR_MS, undefined], [1, "zstd"]] as const) {
    time.nowMs += passedMs;
    await cache.recompress();
    assert.equal(await world.formOf(object), form, `after ${passedMs} ms`);
  }
});

Deno.test("recompression: a client that breaks off during it keeps the former file", async () => {
  await using world = await worldOf();
  await world.pull(object);
  const kept = await world.keptOf(object);
  assert.ok(kept);
  const broken = { kind: "nar-broken", at: kept.at, atMs: world.time.nowMs } as const;
  world.encoder.onPiece = () => void world.cache.metadata.apply([broken]);
  await world.cache.recompress();
  assert.deepEqual(await world.keptOf(object), kept);
  assert.deepEqual(await Array.fromAsync(world.cache.nars.list(""), ({ at }) => at), [kept.at]);
  assert.deepEqual(await world.cache.metadata.pendingFiles(), []);
});

Deno.test("recompression: a file that a client reads stays until the read ends", async () => {
  // No socket's buffers hold it.
  const large = makeStoreObject({ name: "large-1.0", size: 32 << 20 });
  await using world = await worldOf({ objects: [large] });
  const { cache } = world;
  const { path, bytes } = await world.pull(large);
  await using server = cache.listen();
  using connection = await Deno.connect({ port: server.port });
  const request = `GET ${path} HTTP/1.1\r\nHost: cache.test\r\nRange: bytes=0-${
    bytes.length - 1
  }\r\n\r\n`;
  await connection.write(new TextEncoder().encode(request));
  await connection.read(new Uint8Array(1));
  while (cache.beingRead.size === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await cache.recompress();
  assert.equal(await world.formOf(large), undefined);
  let left = bytes.length;
  const into = new Uint8Array(1 << 20);
  while (cache.beingRead.size > 0 && left > 0) left -= await connection.read(into) ?? left;
  while (cache.beingRead.size > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await cache.recompress();
  assert.equal(await world.formOf(large), "zstd");
});

Deno.test("recompression: a wrong new file is not kept", async () => {
  await using world = await worldOf();
  await world.pull(object);
  const kept = await world.keptOf(object);
  const faults: StubEncoder["fault"][] = [
    (file) => file.with(400_000, (file[400_000] ?? 0) ^ 1),
    (file) => file.subarray(0, -1),
    () => {
      throw new Error("no encoder");
    },
  ];
  for (const fault of faults) {
    world.encoder.fault = fault;
    world.time.nowMs += 2 * HOUR_MS;
    await world.cache.recompress();
    assert.deepEqual(await world.keptOf(object), kept);
    assert.deepEqual(world.cache.growingFiles(), []);
  }
  assert.equal(world.encoder.orders.length, faults.length);
});

Deno.test("recompression: a file that fails is not tried again for an hour", async () => {
  await using world = await worldOf();
  await world.pull(object);
  world.encoder.fault = corrupted;
  await world.cache.recompress();
  await world.cache.recompress();
  assert.equal(world.encoder.orders.length, 1);
  assert.equal(world.cache.logged("warn").at(-1)?.msg, "nar not recompressed");
});

Deno.test("recompression: what another member replaced before its lease came is not encoded", async () => {
  const { recompression } = NO_OTHER_MEMBERS;
  let before = () => Promise.resolve();
  const leases = {
    ...NO_OTHER_MEMBERS,
    recompression: () => before().then(recompression),
  };
  await using world = await worldOf({ leases });
  await world.pull(object);
  before = async () => void await recompressed(world.cache, object);
  world.time.nowMs += 2 * HOUR_MS;
  await world.cache.recompress();
  assert.equal(await world.formOf(object), "zstd");
  assert.equal(world.encoder.orders.length, 0);
});

const corrupted = (file: Uint8Array<ArrayBuffer>) => file.with(300, (file[300] ?? 0) ^ 1);

Deno.test("recompression: nothing goes for it, however long ago it was used", async () => {
  const other = makeStoreObject({ name: "other-1.0", size: 600_000, seed: 2 });
  await using world = await worldOf({ objects: [object, other], limitBytes: 1_700_000 });
  await world.pull(object);
  await world.pull(other);
  world.time.nowMs += 2 * HOUR_MS;
  const before = await Promise.all([object, other].map(world.keptOf));
  for (let run = 0; run < 2; run++) await world.cache.recompress();
  assert.deepEqual(await Promise.all([object, other].map(world.keptOf)), before);
  assert.equal(world.encoder.orders.length, 0);
  const told = world.cache.logged("info").filter(({ msg }) => /waits for room/.test(msg));
  assert.deepEqual(told.map(({ files }) => files), [2], "once");
});

Deno.test("recompression: a file that fits without the room to encode it waits, and the log says so", async () => {
  await using world = await worldOf({ limitBytes: 1_440_000 });
  await world.pull(object);
  await world.cache.recompress();
  assert.equal(world.encoder.orders.length, 0);
  const told = world.cache.logged("info").filter(({ msg }) => /waits for room/.test(msg));
  assert.deepEqual(told.map(({ files }) => files), [1]);
});

Deno.test("recompression: a client that needs its room has it, and nothing goes", async () => {
  const other = makeStoreObject({ name: "other-1.0", size: 600_000, seed: 2 });
  const large = makeStoreObject({ name: "large-1.0", size: 2_300_000, seed: 3 });
  const objects = [object, other, large];
  await using world = await worldOf({ objects, limitBytes: 4_000_000 });
  await world.pull(object);
  await world.pull(other);
  let pulling: Promise<unknown> | undefined;
  world.encoder.onPiece = () => pulling ??= world.pull(large);
  await world.cache.recompress();
  assert.equal(world.encoder.orders.length, 1);
  const kept = await Promise.all(objects.map(world.keptOf));
  assert.deepEqual(kept.map((one) => one && (one.form ?? "as it came")), [
    "as it came",
    "as it came",
    "as it came",
  ]);
  assert.deepEqual(world.cache.growingFiles(), []);
});

Deno.test("recompression: a client's NAR that comes in goes before it", async () => {
  const other = makeStoreObject({ name: "other-1.0", size: 700_000, seed: 2 });
  await using world = await worldOf({ objects: [object, other] });
  await world.pull(object);
  const gate = new Gate();
  world.upstream.breakNar(gate.fault, other);
  gate.release(1_000);
  const path = await world.cache.narPath(other.storePathHash);
  const answer = await world.cache.get(path);
  using looks = new IdleLooks();
  const recompressing = world.cache.recompress();
  await Promise.race([looks.several, recompressing]);
  assert.equal(world.encoder.orders.length, 0);
  gate.open();
  await answer.bytes();
  await world.cache.downloadsOver();
  await recompressing;
  assert.equal(await world.formOf(object), "zstd");
});

Deno.test("recompression: a client that waits for a former name goes before it", async () => {
  const large = makeStoreObject({ name: "large-1.0", size: 32 << 20, seed: 3 });
  await using world = await worldOf({ objects: [object, large] });
  const { path } = await world.pull(large);
  await world.cache.recompress();
  assert.equal(await world.formOf(large), "zstd");
  await world.pull(object);
  const answer = await world.cache.get(path);
  using looks = new IdleLooks();
  const recompressing = world.cache.recompress();
  await Promise.race([looks.several, recompressing]);
  assert.equal(world.encoder.orders.length, 1);
  await answer.bytes();
  await recompressing;
  assert.equal(await world.formOf(object), "zstd");
});
