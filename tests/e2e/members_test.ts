import assert from "node:assert/strict";
import { newMemberId } from "../../src/base/member_id.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { testWhere } from "../support/program.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { ROWS_ELSEWHERE } from "../support/shared_servers.ts";
import { accountsOf, narBytesIn, sampleNarBytes } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const NAR_BYTES = 200_000;
const LIMIT_BYTES = 5 * NAR_BYTES;
/** Longer than the silence of a living member. */
const SILENT_MS = 60_000;

Deno.test("members: two larders on one storage stay within one limit", async () => {
  const objects = Array.from({ length: 40 }, (_, seed) => (
    makeStoreObject({ name: "shared", size: NAR_BYTES, seed })
  ));
  await using upstream = await fakeUpstream({ objects, stored: true });
  using storage = tempFolder();
  const flags = {
    "cache-storage-local": storage.path,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-max-size": `${LIMIT_BYTES}B`,
  };
  await using one = await startLarder(flags);
  await using other = await startLarder(flags);
  const sampled = sampleNarBytes(storage.path, 1);

  await Promise.all([one, other].map(async ({ port }, place) => {
    for (let first = 0; first < objects.length; first += 4) {
      await Promise.all(
        objects.slice(first, first + 4).map(async (_, at) => {
          // They meet at half of them.
          const object = objects[(first + at + place * 20) % objects.length];
          assert.ok(object);
          const narinfo = await servedNarinfo(port, object.storePathHash);
          assert.equal((await servedNar(port, narinfo)).status, 200);
        }),
      );
    }
  }));

  const { most, samples } = await sampled.stop();
  assert.ok(samples > 20, `${samples} samples`);
  assert.ok(most <= LIMIT_BYTES, `${most} bytes on disk, at most ${LIMIT_BYTES}`);
  assert.ok(most > LIMIT_BYTES / 2, "the space is used");
  await eventually("nothing is reserved", () => {
    const { reserved, countedBytes } = accountsOf(storage.path);
    return reserved.join() === "0,0" && countedBytes === narBytesIn(storage.path);
  });
  other.kill("SIGTERM");
  await other.ended;
  assert.deepEqual(accountsOf(storage.path).reserved, [0]);
});

sqliteTest("members: a start leaves alone a living member that it does not see", async () => {
  using storage = tempFolder();
  const process = new Deno.Command("sh", { args: ["-c", ""] }).spawn();
  await process.status;
  // As in another container of the same host name.
  const unseen = newMemberId(Deno.hostname(), process.pid);
  {
    const database = await openDatabase(`${storage.path}/db.sqlite`);
    // A heartbeat of the future is as old as the start's own.
    await using ahead = new SqliteMetadataStore(database, () => Date.now() + SILENT_MS);
    await ahead.beat(unseen, { reservedBytes: 1_000, limitBytes: Infinity });
    Deno.mkdirSync(`${storage.path}/tmp/${unseen}`, { recursive: true });
  }
  await using _larder = await startLarder({ "cache-storage-local": storage.path });
  assert.deepEqual(accountsOf(storage.path).reserved.toSorted(), [0, 1_000]);
  assert.equal([...Deno.readDirSync(`${storage.path}/tmp`)].length, 2);
});

/** Registers a test that writes rows into the file of SQLite. */
function sqliteTest(name: string, fn: () => Promise<void>): void {
  testWhere(ROWS_ELSEWHERE, name, fn);
}
