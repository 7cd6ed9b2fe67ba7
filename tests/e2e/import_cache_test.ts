import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter } from "../support/faults.ts";
import { startLarder } from "../support/larder_process.ts";
import { runLarder, withoutProgress } from "../support/run_larder.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { accountsOf, filesBelow, narNameIn } from "../support/storage_look.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { chain, makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const NO_UPSTREAM = { "cache-upstream-url": "http://127.0.0.1:9" };

Deno.test("import cache: another larder serves exported paths without an upstream", async () => {
  using first = tempFolder();
  using second = tempFolder();
  using stick = tempFolder();
  const objects = chain(3);
  const top = objects.at(-1)?.storePath ?? "";
  const url = `file://${stick.path}`;
  await using upstream = await fakeUpstream({ objects, stored: true });
  await stoppedLarder(first.path, upstream, objects);
  await runLarder(["export", url, top, "--cache-storage-local", first.path]);

  const trusting = ["--cache-upstream-public-key", upstream.publicKey];
  const into = (path: string) => ["import", "cache", url, "--cache-storage-local", path];
  const untrusted = await runLarder(into(second.path));
  assert.equal(untrusted.status, 1);
  assert.equal(accountsOf(second.path).narinfos.size, 0, "no trusted key has signed them");
  const ran = await runLarder([...into(second.path), ...trusting]);
  assert.deepEqual([ran.status, withoutProgress(ran.err)], [0, ""]);
  assert.match(ran.out, /^imported 3 paths/);
  const again = await runLarder([...into(second.path), ...trusting]);
  assert.match(again.out, /imported 0 paths \(0 B\); 3 were here already/);
  await checkServed(second.path, objects);
});

Deno.test("import cache: paths signed by larder's own key come, and are signed once", async () => {
  using first = tempFolder();
  using second = tempFolder();
  using stick = tempFolder();
  const objects = chain(2);
  const url = `file://${stick.path}`;
  await using upstream = await fakeUpstream({ objects, stored: true });
  await stoppedLarder(first.path, upstream, objects);
  const paths = objects.map(({ storePath }) => storePath);
  await runLarder(["export", url, ...paths, "--cache-storage-local", first.path]);
  Deno.copyFileSync(`${first.path}/secret-key`, `${second.path}/secret-key`);

  const ran = await runLarder(["import", "cache", url, "--cache-storage-local", second.path]);

  assert.deepEqual([ran.status, withoutProgress(ran.err)], [0, ""]);
  using database = new DatabaseSync(`${second.path}/db.sqlite`, { readOnly: true });
  const rows = database.prepare("SELECT own_signature FROM narinfo").all();
  assert.equal(rows.filter((row) => row["own_signature"] !== null).length, objects.length);
});

Deno.test("import cache: only the closures of the given paths come", async () => {
  using folder = tempFolder();
  using stick = tempFolder();
  const objects = chain(4);
  const [bottom, middle] = objects;
  const other = makeStoreObject({ name: "other" });
  await using upstream = await fakeUpstream({ objects: [...objects, other], stored: true });
  await stoppedLarder(folder.path, upstream, [...objects, other]);
  const paths = [...objects, other].map(({ storePath }) => storePath);
  const from = ["--cache-storage-local", folder.path];
  await runLarder(["export", `file://${stick.path}`, ...paths, ...from]);

  const trusting = ["--cache-upstream-public-key", upstream.publicKey];
  const files = { "/list": `# wanted\n\n${middle?.storePath}\n` };
  for (const words of [[middle?.storePath ?? ""], ["--paths-from", "/list"]]) {
    using storage = tempFolder();
    const to = ["--cache-storage-local", storage.path, ...trusting];
    const ran = await runLarder(["import", "cache", `file://${stick.path}`, ...words, ...to], {
      files,
    });
    assert.equal(ran.status, 0, ran.err);
    const wanted = [bottom?.storePathHash, middle?.storePathHash];
    assert.deepEqual(accountsOf(storage.path).narinfos, new Set(wanted));
  }
});

Deno.test("import cache: over HTTP, a broken NAR is listed and comes the next time", async () => {
  using storage = tempFolder();
  const objects = chain(3);
  const [, middle, top] = objects;
  await using upstream = await fakeUpstream({ objects, compression: "none" });
  const words = ["import", "cache", upstream.url, top?.storePath ?? ""];
  const to = ["--cache-storage-local", storage.path];
  const trusting = ["--cache-upstream-public-key", upstream.publicKey];
  upstream.breakNar(cutAfter(50), middle);

  const first = await runLarder([...words, ...to, ...trusting]);
  assert.equal(first.status, 1);
  assert.match(
    withoutProgress(first.err),
    new RegExp(`^larder: not imported:\n {2}${middle?.storePath}: .+\n$`),
  );
  assert.equal(accountsOf(storage.path).narinfos.size, 2);

  upstream.mend();
  assert.equal((await runLarder([...words, ...to, ...trusting])).status, 0);
  await checkServed(storage.path, objects);
});

Deno.test("import cache: a narinfo that names a file outside brings nothing", async () => {
  using folder = tempFolder();
  using storage = tempFolder();
  const [object] = chain(1);
  assert.ok(object);
  await using upstream = await fakeUpstream({ objects: [object], compression: "none" });
  const text = await upstream.narinfoOf(object);
  Deno.mkdirSync(`${folder.path}/cache`);
  Deno.writeFileSync(`${folder.path}/outside.nar`, object.nar);
  const narinfo = text.replace(/^URL: .*$/m, "URL: ../outside.nar");
  Deno.writeTextFileSync(`${folder.path}/cache/${object.storePathHash}.narinfo`, narinfo);
  const ran = await runLarder([
    ...["import", "cache", `file://${folder.path}/cache`],
    ...["--cache-storage-local", storage.path],
    ...["--cache-upstream-public-key", upstream.publicKey],
  ]);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /its URL leaves the cache/);
});

Deno.test("import cache: invalid arguments are status 2", async () => {
  const path = chain(1)[0]?.storePath ?? "";
  const wrong = [[], ["ftp://a.example", path], ["https://a.example"], ["file:///x", "no-path"]];
  for (const words of wrong) {
    assert.equal((await runLarder(["import", "cache", ...words])).status, 2, words.join(" "));
  }
});

async function checkServed(storage: string, objects: readonly StoreObject[]): Promise<void> {
  await using larder = await startLarder({ ...NO_UPSTREAM, "cache-storage-local": storage });
  for (const { storePathHash } of objects) {
    const narinfo = await servedNarinfo(larder.port, storePathHash);
    const answer = await servedNar(larder.port, narinfo);
    assert.deepEqual([answer.status, answer.headers.get("x-cache")], [200, "HIT"]);
  }
  const names = [...filesBelow(`${storage}/nar`).keys()].map(narNameIn);
  assert.equal(new Set(names).size, objects.length);
}
