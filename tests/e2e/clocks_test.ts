import assert from "node:assert/strict";
import { PostgresMetadataStore } from "../../src/metadata/postgres/postgres_metadata_store.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import { type LarderFlags, startLarder } from "../support/larder_process.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { testUnless, unlessFile } from "../support/program.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { pushOf } from "../support/uploading.ts";

const HOUR_MS = 3_600_000;
const TOKEN = "a-write-token-of-some-length";

const server = PostgresServer.start();

/** Of Debian's package. Its program `faketime` stays between larder and its signals. */
const LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/** The clock of a machine that is two hours ahead. */
const CLOCK_AHEAD = { LD_PRELOAD: LIBRARY, FAKETIME: "+2h", FAKETIME_DONT_FAKE_MONOTONIC: "1" };

const clockMissing = unlessFile(
  LIBRARY,
  "faketime is not installed (Debian: apt install faketime)",
);

testUnless(
  postgresMissing || clockMissing,
  "clocks: an upload waits an hour for its narinfo, though the clocks of the members differ",
  async () => {
    assert.ok(server);
    using storage = tempFolder();
    const url = server.createDatabase();
    const flags: LarderFlags = {
      "cache-storage-local": storage.path,
      "cache-database-url": url,
      "cache-upstream-url": "http://127.0.0.1:9",
      "cache-allow-put-verb": "true",
      "cache-put-token": `ci:${TOKEN}`,
    };
    await using larder = await startLarder(flags, CLOCK_AHEAD);
    const { ahead_s } = await larder.logged("clock differs from the database's");
    assert.ok(Math.abs(Number(ahead_s) - 7_200) < 60, `${ahead_s} s`);

    const { narPath, file } = await pushOf(makeStoreObject({ name: "early" }));
    const headers = { authorization: `Bearer ${TOKEN}` };
    const put = { method: "PUT", body: file.bytes, headers };
    const { status, body } = await fetch(larder.url + narPath, put);
    await body?.cancel();
    assert.equal(status, 201);

    await using database = await PostgresMetadataStore.open({ url, log: SILENT });
    const [staged] = await database.listLooseNars("", 2);
    const leftMs = Number(staged?.stagedUntilMs) - Date.now();
    assert.ok(leftMs > 0.9 * HOUR_MS && leftMs <= HOUR_MS + 1_000, `${leftMs} ms are left`);
  },
);
