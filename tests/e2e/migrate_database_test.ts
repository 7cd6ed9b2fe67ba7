import assert from "node:assert/strict";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_programs.ts";
import { testUnless } from "../support/program.ts";
import { runLarder } from "../support/run_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = PostgresServer.start();
const [a, b] = [hash("a"), hash("b")];

testUnless(
  postgresMissing,
  "migrate: the database of a used storage moves to PostgreSQL, and what comes meanwhile",
  async () => {
    assert.ok(server);
    using folder = tempFolder();
    const from = `${folder.path}/db.sqlite`;
    const to = server.createDatabase();
    await using used = new SqliteMetadataStore(await openDatabase(from));
    await used.apply([put(a, [b], 1), ...keep(fileOf(narOf(a).name), 1)]);

    const first = await runLarder(["migrate", "database", `sqlite:${from}`, to]);
    assert.equal(first.out, "1 row copied, 1 compared: both databases are the same.\n");
    assert.equal(first.status, 0);
    await used.apply([put(b, [], 2)]);
    const second = await runLarder(["migrate", "database", `sqlite:${from}`, to]);
    assert.equal(second.out, "1 row copied, 2 compared: both databases are the same.\n");

    await using moved = await openPostgresStore(to);
    assert.deepEqual(await moved.findNarinfo(b), await used.findNarinfo(b));
    assert.deepEqual(await moved.keptNars(""), await used.keptNars(""));
  },
);

Deno.test("migrate: words that name no databases are refused, without a password", async () => {
  const { status, err } = await runLarder([
    "migrate",
    "database",
    "sqlite:/a",
    "mysql://u:hush@h/x",
  ]);
  assert.equal(status, 2);
  assert.match(err, /migrate: got "mysql:\/\/\(hidden\)@h\/x", expected sqlite: and the path/);
});
