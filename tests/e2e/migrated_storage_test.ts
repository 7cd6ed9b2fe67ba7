import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { readMigrations } from "../../src/metadata/migrations.ts";
import { eventually } from "../support/eventually.ts";
import { startLarder } from "../support/larder_process.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { scrape } from "../support/scrape.ts";
import { accountsOf, filesBelow, narBytesIn, narNameIn } from "../support/storage_look.ts";
import { tempFolder } from "../support/temp_folder.ts";

/**
 * The storage of a larder of schema 5, the last one without ids and seals: the SQL of its database,
 * and its NAR files. It was killed while it removed one file, published another, and replaced a
 * third.
 */
const FIXTURE = new URL("../fixtures/storage_schema_5/", import.meta.url).pathname;
const [LIB, APP] = ["dr3giplb88h235z5blrxmmzf4mg3b9xf", "a99cyf9606krih6nchz7mdssapwvg02q"];
const [TOOL, REPLACED] = ["bv21bkcif6npghfhvvbs87kvgygyiy3b", "33w4hdn1sw2zy0bm3gjnrdbxhf5f22wl"];
const KEPT = [LIB, APP, TOOL, REPLACED];
/** Their narinfos are stored, and their files are not kept. */
const [MARKED, HALF] = ["mzi73yk8cih11ki7b5scnbbx8k4y1lxp", "m5625pll54ch038cfasv1zm2cvdlh8lm"];
const PINNED_BYTES = 2 * 2_848;

const flagsOf = (storage: string) => ({
  "cache-storage-local": storage,
  "cache-upstream-url": "http://127.0.0.1:9",
  "cache-max-size": "1M",
  "prometheus-enabled": "true",
});

Deno.test("migration: NARs that an older larder kept are served without an upstream", async () => {
  using storage = tempFolder();
  restore(storage.path);
  const before = filesBelow(`${storage.path}/nar`);
  {
    await using larder = await startLarder(flagsOf(storage.path));
    await larder.logged("reconciled", ({ mended }) => mended === 0);
    for (const storePathHash of KEPT) {
      const narinfo = await servedNarinfo(larder.port, storePathHash);
      const answer = await servedNar(larder.port, narinfo);
      assert.equal(answer.headers.get("x-cache"), "HIT");
      await checkNar(narinfo, answer.body);
    }
    for (const storePathHash of [MARKED, HALF]) {
      const url = `http://127.0.0.1:${larder.port}/${storePathHash}.narinfo`;
      const { status, body } = await fetch(url);
      await body?.cancel();
      assert.equal(status, 404, "a narinfo that leads to no NAR");
    }
    await eventually("their seals are written", () => sealed(storage.path) === KEPT.length);
  }
  assert.equal(versionOf(storage.path), readMigrations("sqlite").length);
  const after = filesBelow(`${storage.path}/nar`);
  assert.equal(after.size, KEPT.length);
  for (const [path, size] of after) assert.equal(before.get(path), size, "a file stays as it is");
});

Deno.test("migration: accounts and pins are right before the first request", async () => {
  using storage = tempFolder();
  restore(storage.path);
  await using larder = await startLarder(flagsOf(storage.path));
  const get = (path: string) => fetch(`http://127.0.0.1:${larder.port}${path}`);
  const metrics = await scrape({ get });
  const { countedBytes, keptFiles, pending } = accountsOf(storage.path);
  assert.deepEqual([keptFiles, pending], [KEPT.length, []]);
  assert.equal(countedBytes, narBytesIn(storage.path));
  assert.equal(metrics.value("larder_cache_size_bytes"), countedBytes);
  assert.deepEqual(await (await get("/pins")).json(), [APP]);
  await eventually("the size of the pin is known", async () => {
    return (await scrape({ get })).value("larder_pinned_bytes") === PINNED_BYTES;
  });
});

/** Puts the fixture where a larder finds it. */
function restore(storage: string): void {
  using database = new DatabaseSync(`${storage}/db.sqlite`);
  database.exec(Deno.readTextFileSync(`${FIXTURE}/db.sql`));
  for (const path of filesBelow(`${FIXTURE}/nar`).keys()) {
    const folder = `${storage}/nar/${narNameIn(path).slice(0, 2)}`;
    Deno.mkdirSync(folder, { recursive: true });
    Deno.copyFileSync(path, `${folder}/${narNameIn(path)}`);
  }
}

/** How many kept files have a seal. */
function sealed(storage: string): number {
  using database = new DatabaseSync(`${storage}/db.sqlite`, { readOnly: true });
  return Number(database.prepare("SELECT count(kept_seal) AS count FROM nar").get()?.["count"]);
}

function versionOf(storage: string): number {
  using database = new DatabaseSync(`${storage}/db.sqlite`, { readOnly: true });
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
}
