import assert from "node:assert/strict";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { Change } from "../../src/metadata/metadata_store.ts";
import { eventually } from "../support/eventually.ts";
import { startLarder } from "../support/larder_process.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import { silenceMembers } from "../support/silenced_members.ts";
import { accountsOf, narBytesIn, narFilesIn } from "../support/storage_look.ts";
import { tempFolder } from "../support/temp_folder.ts";

const FILES = 4_000;
const FILE_BYTES = 1_000;
const KILLS = 4;

/** The number of entries for which larder writes the counts at once. */
const BATCH = 500;

Deno.test("killed while it evicts: the counts match the files after each start", async () => {
  using storage = tempFolder();
  await stock(storage.path);
  const flags = { "cache-storage-local": storage.path, "cache-upstream-url": "http://127.0.0.1:9" };
  let killsInTheMiddle = 0;
  for (let kill = 1; kill <= KILLS; kill++) {
    const before = narFilesIn(storage.path).size;
    {
      await using larder = await startLarder({ ...flags, "cache-max-size": "1B" });
      // A little further each time, so that the moments differ.
      await eventually("it evicts", () => {
        return narFilesIn(storage.path).size < before - 50 * kill;
      });
      larder.kill("SIGKILL");
      await larder.ended;
    }
    if (narFilesIn(storage.path).size > 0) killsInTheMiddle++;
    else await stock(storage.path);

    silenceMembers(storage.path);
    await using larder = await startLarder(flags);
    await larder.logged("reconciled");
    const { countedBytes, keptFiles, pending, narinfos } = accountsOf(storage.path);
    const files = narFilesIn(storage.path);
    assert.equal(countedBytes, narBytesIn(storage.path));
    assert.deepEqual(pending, []);
    assert.equal(keptFiles, files.size);
    assert.equal(narinfos.size, files.size);
    const mended = larder.lines.filter(({ msg }) => /^(orphan nar|stored nar)/.test(msg));
    assert.deepEqual(mended, [], "nothing was left to be found by looking at all files");
  }
  assert.ok(killsInTheMiddle > 0, "each kill came behind the last file");
});

/** As many runs have left it: each path with a file of its own. */
async function stock(storage: string): Promise<void> {
  await using metadata = new SqliteMetadataStore(await openDatabase(`${storage}/db.sqlite`));
  const bytes = new Uint8Array(FILE_BYTES);
  for (let first = 0; first < FILES; first += BATCH) {
    const changes: Change[] = [];
    for (let file = first; file < first + BATCH; file++) {
      const path = hash(`path ${file}`);
      const kept = fileOf(narOf(path).name, FILE_BYTES);
      const folder = `${storage}/nar/${kept.at.slice(0, 2)}`;
      Deno.mkdirSync(folder, { recursive: true });
      Deno.writeFileSync(`${folder}/${kept.at}`, bytes);
      changes.push(put(path, [], file), ...keep(kept));
    }
    await metadata.apply(changes);
  }
}
