import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { servedNar } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { accountsOf, filesBelow, narNameIn, storedFileOf } from "../support/storage_look.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

const objects = ["gone", "short", "whole"].map((name, seed) => (
  makeStoreObject({ name, seed, size: 300_000 })
));
const ORPHAN = `${"0".repeat(52)}.nar.xz`;

/** With so many files the first pass has a thread of its own. */
const MANY_FILES = 30_000;

for (const more of [0, MANY_FILES]) {
  const where = more === 0 ? "" : ", by a thread of its own";
  Deno.test(`reconcile: changed behind a stopped larder, mended by its start${where}`, async () => {
    using folder = tempFolder();
    await using upstream = await fakeUpstream({ objects, stored: true });
    const { flags, narinfos } = await stoppedLarder(folder.path, upstream, objects);
    const [gone, short, whole] = narinfos.map(({ narPath }) => narPath.slice("/nar/".length));
    assert.ok(gone && short && whole);
    Deno.removeSync(storedFileOf(folder.path, gone));
    Deno.truncateSync(storedFileOf(folder.path, short), 1_000);
    Deno.mkdirSync(`${folder.path}/nar/00`, { recursive: true });
    Deno.writeTextFileSync(`${folder.path}/nar/00/${ORPHAN}`, "nobody's");
    {
      using database = new DatabaseSync(`${folder.path}/db.sqlite`);
      database.prepare("UPDATE stock SET kept_files = kept_files + ?").run(more);
    }

    await using larder = await startLarder(flags);
    const { files, mended } = await larder.logged("reconciled");

    assert.deepEqual([files, mended], [3, 2]);
    assert.deepEqual(keptBy(folder.path, more).names, [short, whole].toSorted());
    assert.deepEqual(namesOnDisk(folder.path), [short, whole].toSorted());
    // A start reads names alone; larder checks the size before it sends a byte.
    const answers = [];
    for (const narinfo of narinfos) answers.push(await servedNar(larder.port, narinfo));
    const sources = answers.map(({ headers }) => headers.get("x-cache"));
    assert.deepEqual(sources, ["MISS", "MISS", "HIT"]);
    for (const nar of [gone, short]) {
      await larder.logged("nar cached successfully", (line) => line["nar"] === nar);
    }
    await eventually("the replaced files are gone", () => {
      return accountsOf(folder.path).pending.length === 0;
    });
    const bytes = answers.reduce((sum, { body }) => sum + body.length, 0);
    const kept = keptBy(folder.path, more);
    assert.deepEqual(kept, { names: namesOnDisk(folder.path), files: 3, bytes });
  });
}

/** The database's rows of the stored entries. */
function keptBy(storage: string, more: number) {
  using database = new DatabaseSync(`${storage}/db.sqlite`, { readOnly: true });
  const rows = database.prepare("SELECT name FROM nar WHERE kept_size IS NOT NULL").all();
  const stock = database.prepare("SELECT kept_files, kept_bytes, pending_bytes FROM stock").get();
  assert.equal(stock?.["pending_bytes"], 0);
  return {
    names: rows.map(({ name }) => String(name)).toSorted(),
    files: Number(stock?.["kept_files"]) - more,
    bytes: Number(stock?.["kept_bytes"]),
  };
}

function namesOnDisk(storage: string): readonly string[] {
  return [...filesBelow(`${storage}/nar`).keys()].map(narNameIn).toSorted();
}
