import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { newestSchema, readMigrations } from "../../src/metadata/migrations.ts";
import { startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { runLarder } from "../support/run_larder.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { filesBelow } from "../support/storage_look.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** The storage of an earlier larder, see the README there. */
const FIXTURE = new URL("../fixtures/storage_8af4f30a", import.meta.url).pathname;
const PUBLIC_KEY = "old-larder:nUqpys8LJJkkd9hNv42fF+uUoe+6ihIKqzsCoRY8bnM=";
const LIB = "adjhjmrsym072b9yqcn0nk2dg4hnj3n6";
const APP = "7q9zm9rlfmylqcfv05zk8ziyb6hym9cp";
const TOOL = "jv7xd81ybzri6gc4i6jdgp5n4y0ivkjg";
/** Its narinfo is stored, its NAR is not. */
const OTHER = "fw1dsfxpr8b0nms1zblwi29zw7ynbmgj";
const APP_PATH = `/nix/store/${APP}-app-2.0`;

const flagsOf = (storage: string) => ({
  "cache-storage-local": storage,
  "cache-upstream-url": "http://127.0.0.1:9",
});

Deno.test("upgrade: the storage of an earlier commit is served as it was", async () => {
  using storage = tempFolder();
  restore(storage.path);
  {
    await using larder = await startLarder(flagsOf(storage.path));
    const get = (path: string) => fetch(`${larder.url}${path}`);
    assert.equal(await (await get("/pubkey")).text(), `${PUBLIC_KEY}\n`);
    for (const hash of [LIB, APP, TOOL]) {
      const text = Deno.readTextFileSync(`${FIXTURE}/narinfo/${hash}.narinfo`);
      assert.equal(await (await get(`/${hash}.narinfo`)).text(), text);
    }
    for (const hash of [LIB, APP, TOOL]) {
      const narinfo = await servedNarinfo(larder.port, hash);
      const answer = await servedNar(larder.port, narinfo);
      assert.equal(answer.headers.get("x-cache"), "HIT");
      await checkNar(narinfo, answer.body);
    }
    const unled = await get(`/${OTHER}.narinfo`);
    await unled.body?.cancel();
    assert.equal(unled.status, 404, "a narinfo that leads to no NAR");
    assert.equal((await (await get(`/${APP}.ls`)).json()).version, 1);
    assert.deepEqual(await (await get("/pins")).json(), [APP]);
    larder.kill("SIGTERM");
    await larder.ended;
  }
  assert.equal(versionOf(`${storage.path}/db.sqlite`), newestSchema(readMigrations("sqlite")));
  const words = ["--verify-content", "--cache-storage-local", storage.path];
  const { status, out } = await runLarder(["fsck", ...words]);
  assert.equal(status, 0, out);
});

nixTest("upgrade: a Nix that trusts the earlier key alone pulls the closure", async () => {
  using storage = tempFolder();
  restore(storage.path);
  await using larder = await startLarder(flagsOf(storage.path));
  using nix = new NixClient();
  await nix.realise(APP_PATH, { from: [larder.url], trust: [PUBLIC_KEY] });
  assert.deepEqual(await nix.closureOf(APP_PATH), [APP_PATH, `/nix/store/${LIB}-lib-1.0`]);
});

/** Puts the fixture where a larder finds it. */
function restore(storage: string): void {
  const path = `${storage}/db.sqlite`;
  // The rows of a table may come before those that they refer to.
  using database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  database.exec(Deno.readTextFileSync(`${FIXTURE}/db.sql`));
  Deno.copyFileSync(`${FIXTURE}/secret-key`, `${storage}/secret-key`);
  for (const file of filesBelow(`${FIXTURE}/nar`).keys()) {
    const place = storage + file.slice(FIXTURE.length);
    Deno.mkdirSync(place.slice(0, place.lastIndexOf("/")), { recursive: true });
    Deno.copyFileSync(file, place);
  }
}

function versionOf(path: string): number {
  using database = new DatabaseSync(path, { readOnly: true });
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
}
