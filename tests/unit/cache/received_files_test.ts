import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { NarFetcher } from "../../../src/cache/fetch/nar_fetcher.ts";
import type { NarMeasure } from "../../../src/cache/verify/nar_verifier.ts";
import type { NarRow } from "../../../src/metadata/metadata_store.ts";
import { type FileHash, sha256FromDigest } from "../../../src/nix/hash.ts";
import { narName } from "../../../src/nix/nar_name.ts";
import {
  BYTES,
  downloadsOver,
  ending,
  know,
  MEASURED,
  PACKED,
} from "../../support/downloads_scene.ts";
import { eventually } from "../../support/eventually.ts";
import { StockedSpace } from "../../support/stocked_space.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("downloads: a client that joins a received file joins no prefetch", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  await know(stocked, PACKED);
  const checked = Promise.withResolvers<NarMeasure>();
  const fetcher: NarFetcher = { begin: () => assert.fail("an upstream is asked") };
  const downloads = downloadsOver({ stocked, folder, fetcher, measure: checked.promise });
  const path = `${folder.path}/${PACKED.name}.x1y2.received`;
  Deno.writeFileSync(path, BYTES);
  const resumed = downloads.resume([path]);
  await eventually("it is verified", () => downloads.find(PACKED.name) !== undefined);

  const { joined, isFirstOfPrefetch } = downloads.join(PACKED, "request");

  assert.deepEqual({ joined, isFirstOfPrefetch }, { joined: true, isFirstOfPrefetch: false });
  checked.resolve(MEASURED);
  await resumed;
});

Deno.test("downloads: received files are hashed by verify threads, one each at once", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  const left = [3, 2, 1].map((size) => receivedFile(folder.path, size));
  for (const { nar } of left) await know(stocked, nar);
  const checked = Promise.withResolvers<NarMeasure>();
  const hashed: string[] = [];
  const verifying: string[] = [];
  const downloads = downloadsOver({
    ...{ stocked, folder, fetcher: ending(), measure: checked.promise, verifyThreads: 2 },
    verifying: (path, compression) => (compression === "none" ? hashed : verifying).push(path),
    nowMs: () => Date.now() + 60_000,
  });
  const paths = left.map(({ path }) => path);

  await downloads.receive(paths);
  const { files, bytes, oldestMs } = downloads.backlog();
  // They wait since their last byte came, whatever process it came to.
  assert.deepEqual([files, bytes, oldestMs >= 60_000], [3, 3_000 + 2_000 + 1_000, true]);
  const resumed = downloads.resume([]);
  await eventually("two are verified", () => verifying.length === 2);

  // Both have begun, in either order.
  assert.deepEqual(new Set(hashed), new Set([paths[2], paths[1]]));
  assert.equal(downloads.backlog().files, 3);
  // One that a client waits for waits for nobody.
  const [large] = left;
  assert.ok(large);
  const { download, joined } = downloads.join(large.nar, "request");
  await download.readable(0);
  assert.deepEqual([joined, hashed.length, hashed.at(-1)], [true, 3, paths[0]]);
  checked.resolve(MEASURED);
  await resumed;
  await downloads.idle();
  assert.deepEqual(downloads.backlog(), { files: 0, bytes: 0, oldestMs: 0 });
});

Deno.test("downloads: a received file waits while a dead member's bytes are reserved", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(1_500);
  const { nar, path } = receivedFile(folder.path, 1);
  await know(stocked, nar);
  const { metadata } = stocked;
  await metadata.beat("dead", { reservedBytes: 1_000, limitBytes: 1_500 });
  const measure = Promise.resolve(MEASURED);
  const downloads = downloadsOver({ stocked, folder, fetcher: ending(), measure });

  await downloads.resume([path]);
  assert.equal(downloads.backlog().files, 1);
  assert.equal((await metadata.findNar(nar.name))?.kept, undefined);
  await metadata.leave("dead");
  await stocked.space.refresh();
  await downloads.resume([]);
  assert.equal((await metadata.findNar(nar.name))?.kept?.fileSize, 1_000);
  assert.equal(downloads.backlog().files, 0);
});

/** Of so many kilobytes. */
function receivedFile(folder: string, kilobytes: number): { nar: NarRow; path: string } {
  const bytes = new Uint8Array(kilobytes * 1_000).fill(kilobytes);
  const fileHash = sha256FromDigest(createHash("sha256").update(bytes).digest()) as FileHash;
  const nar = { ...PACKED, name: narName(fileHash, "xz"), fileHash, fileSize: bytes.length };
  const path = `${folder}/${nar.name}.x1y2.received`;
  Deno.writeFileSync(path, bytes);
  return { nar, path };
}

Deno.test("downloads: a stop leaves received files, hashed or not, to the next start", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  const left = [1, 2, 3].map((size) => receivedFile(folder.path, size));
  for (const { nar } of left) await know(stocked, nar);
  const checked = Promise.withResolvers<NarMeasure>();
  const verifying: string[] = [];
  const downloads = downloadsOver({
    ...{ stocked, folder, fetcher: ending(), measure: checked.promise },
    verifying: (path) => verifying.push(path),
  });
  const resumed = downloads.resume(left.map(({ path }) => path));
  await eventually("one is verified", () => verifying.length === 2);

  downloads.stopping();
  checked.reject(new Error("the thread has ended"));
  await resumed;

  assert.deepEqual([...Deno.readDirSync(folder.path)].length, left.length);
  assert.equal(verifying.length, 2);
});
