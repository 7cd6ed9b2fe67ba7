import assert from "node:assert/strict";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { decompress } from "../support/decompressors.ts";
import { startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { recompressed } from "../support/recompressed.ts";
import { runLarder } from "../support/run_larder.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { chain, makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const large = makeStoreObject({ name: "large", size: 12_000_000 });
const objects = [...chain(3), large];
const top = objects[2]?.storePath ?? "";
const NO_UPSTREAM = { "cache-upstream-url": "http://127.0.0.1:9" };

/** A storage whose files were recompressed since a larder filled it, and what that one answered. */
async function recompressedStorage(storage: string) {
  await using upstream = await fakeUpstream({ objects, compression: "xz", stored: true });
  const { narinfos } = await stoppedLarder(storage, upstream, objects);
  await using metadata = new SqliteMetadataStore(await openDatabase(`${storage}/db.sqlite`));
  const nars = new LocalNarStore(`${storage}/nar`);
  for (const object of objects) {
    await recompressed({ metadata, nars, tempPath: storage }, object);
  }
  const { publicKey } = upstream;
  return { formerPaths: narinfos.map(({ narPath }) => narPath), publicKey };
}

/** Each object comes from the store in zstd, with the facts of its narinfo. */
async function assertServed(
  port: number,
  wanted: readonly StoreObject[],
  formerPaths: readonly string[] = [],
): Promise<void> {
  for (const { storePathHash } of wanted) {
    const narinfo = await servedNarinfo(port, storePathHash);
    assert.equal(narinfo.compression, "zstd");
    const { status, headers } = await servedNar(port, narinfo);
    assert.deepEqual([status, headers.get("x-cache")], [200, "HIT"]);
  }
  for (const [at, path] of formerPaths.entries()) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    assert.equal(answer.headers.get("x-cache"), "HIT");
    assertSameBytes(
      await decompress(await answer.bytes(), "xz"),
      objects[at]?.nar ?? new Uint8Array(0),
    );
  }
}

Deno.test("recompressed storage: its export is a plain cache, which another larder imports", async () => {
  using first = tempFolder();
  using second = tempFolder();
  using stick = tempFolder();
  const url = `file://${stick.path}`;
  const { publicKey } = await recompressedStorage(first.path);
  const from = ["--cache-storage-local", first.path];

  const exported = await runLarder(["export", url, top, large.storePath, ...from]);
  assert.equal(exported.status, 0, exported.err);
  const into = ["--cache-storage-local", second.path, "--cache-upstream-public-key", publicKey];
  const imported = await runLarder(["import", "cache", url, ...into]);
  assert.equal(imported.status, 0, imported.err);
  assert.match(imported.out, /^imported 4 paths/);
  // The first one has them, in the form of the export.
  const own = ["--cache-upstream-public-key", publicKey, ...from];
  assert.match((await runLarder(["import", "cache", url, ...own])).out, /4 were here already/);

  for (const storage of [first.path, second.path]) {
    await using larder = await startLarder({ ...NO_UPSTREAM, "cache-storage-local": storage });
    await assertServed(larder.port, objects);
    larder.kill("SIGTERM");
    await larder.ended;
    const checked = await runLarder(["fsck", "--verify-content", "--cache-storage-local", storage]);
    assert.equal(checked.status, 0, checked.out + checked.err);
  }
});

testUnless(
  S3_UNAVAILABLE,
  "recompressed storage: it moves to a bucket, from which each name is answered",
  async () => {
    if (server === undefined) return;
    using storage = tempFolder();
    const { formerPaths } = await recompressedStorage(storage.path);
    const place = s3Flags(server.bucket());
    const words = Object.entries(place).map(([name, value]) => `--${name}=${value}`);
    const bucket = `s3://${place["cache-storage-s3-bucket"]}`;
    const moved = await runLarder(["migrate", "storage", storage.path, bucket, ...words]);
    assert.equal(moved.status, 0, moved.err);
    assert.match(moved.out, /^4 NAR files copied/);

    Deno.removeSync(`${storage.path}/nar`, { recursive: true });
    const flags = { ...NO_UPSTREAM, ...place, "cache-storage-local": storage.path };
    await using larder = await startLarder(flags);
    await assertServed(larder.port, objects, formerPaths);
  },
);
