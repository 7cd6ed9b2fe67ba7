import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Facts } from "../../../src/base/failure.ts";
import { readMetadata } from "../../../src/app/back_ends/metadata_back_end.ts";
import { SILENT } from "../../../src/telemetry/logger.ts";
import { type Migration, readMigrations } from "../../../src/metadata/migrations.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const first: Migration = {
  version: 1,
  name: "0001_things",
  sql: "CREATE TABLE thing (name TEXT) STRICT; INSERT INTO thing VALUES ('kept')",
};
const renaming: Migration = {
  version: 2,
  name: "0002_rename",
  sql: "UPDATE thing SET name = 'changed'",
};
const broken: Migration = {
  version: 2,
  name: "0002_broken",
  sql: "UPDATE thing SET name = 'half'; INSERT INTO missing VALUES (1)",
};

Deno.test("openDatabase: a database from the future is refused with what to do", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path, [first, renaming])).close();
  await assert.rejects(
    openDatabase(path, [first]),
    /schema version 2, this larder knows versions up to 1; start the newer larder/,
  );
});

Deno.test("openDatabase: another program's database is refused, and stays as it is", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  {
    using other = new DatabaseSync(path);
    other.exec("CREATE TABLE narinfos (hash TEXT)");
  }
  const before = Deno.readFileSync(path);

  await assert.rejects(openDatabase(path), /db\.sqlite: it is a database of another program; give/);

  assert.deepEqual(Deno.readFileSync(path), before);
  assert.deepEqual([...Deno.readDirSync(folder.path)].map(({ name }) => name), ["db.sqlite"]);
});

Deno.test("openDatabase: each migration leaves a copy of the database before it", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path, [first])).close();
  (await openDatabase(path, [first, renaming])).close();
  assert.equal(nameIn(path), "changed");
  assert.equal(nameIn(`${path}.schema-1.backup`), "kept");
  assert.deepEqual(copiesIn(folder.path), ["db.sqlite.schema-1.backup"]);
});

Deno.test("openDatabase: the log tells of a migration, and of no new database", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const said: unknown[] = [];
  const log = {
    info(msg: string, { ms, ...facts }: Facts = {}) {
      said.push({ msg, took: typeof ms, ...facts });
    },
  };
  (await openDatabase(path, [first], log)).close();
  assert.deepEqual(said, []);
  (await openDatabase(path, [first, renaming], log)).close();
  (await openDatabase(path, [first, renaming], log)).close();
  const backup = `${path}.schema-1.backup`;
  assert.deepEqual(said, [{ msg: "database migrated", took: "number", from: 1, to: 2, backup }]);
});

Deno.test("openDatabase: the copy leads back, and the way forward leaves one again", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path, [first])).close();
  (await openDatabase(path, [first, renaming])).close();

  Deno.renameSync(`${path}.schema-1.backup`, path);
  const older = await openDatabase(path, [first]);
  older.exec("UPDATE thing SET name = 'later'");
  older.close();
  (await openDatabase(path, [first, renaming])).close();

  assert.equal(nameIn(`${path}.schema-1.backup`), "later");
  assert.deepEqual(copiesIn(folder.path), ["db.sqlite.schema-1.backup"]);
});

Deno.test("openDatabase: without a migration there is no copy", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  for (let start = 0; start < 2; start++) (await openDatabase(path, [first])).close();
  assert.deepEqual(copiesIn(folder.path), []);
});

Deno.test("openDatabase: without room for the copy nothing is migrated", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path, [first])).close();
  // A folder with something in it can be replaced by no file.
  Deno.mkdirSync(`${path}.schema-1.backup/full`, { recursive: true });

  await assert.rejects(
    openDatabase(path, [first, renaming]),
    /Cannot back up to .*schema-1\.backup: .*make room/,
  );

  assert.equal(nameIn(path), "kept");
});

Deno.test("openDatabase: over two schemas it waits until all larders of the old one have stopped", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const known = readMigrations("sqlite");
  const former = known.at(-3)?.version;
  using running = await openDatabase(path, known.slice(0, -2));
  const beat = (atMs: number) =>
    running.prepare("INSERT OR REPLACE INTO member VALUES ('a.1.x', ?, 0, NULL)").run(atMs);
  beat(Date.now());
  await assert.rejects(
    openDatabase(path, known),
    new RegExp(
      `Cannot migrate database: it has schema version ${former}, and older larders run on it: ` +
        "a\\.1\\.x; stop them all \\(systemctl .* killed counts for 30 s",
    ),
  );
  assert.deepEqual(copiesIn(folder.path), []);
  beat(Date.now() - 60_000);
  (await openDatabase(path, known)).close();
});

Deno.test("openDatabase: to the next schema it migrates while larders run", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const known = readMigrations("sqlite");
  using running = await openDatabase(path, known.slice(0, -1));
  running.prepare("INSERT INTO member VALUES ('a.1.x', ?, 0, NULL)").run(Date.now());
  (await openDatabase(path, known)).close();
});

Deno.test("a command that copies a database refuses another schema, with what to do", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const known = readMigrations("sqlite");
  (await openDatabase(path, known.slice(0, -1))).close();
  const place = { kind: "sqlite", path } as const;
  await assert.rejects(readMetadata(place, SILENT), /it has an older schema; start larder first/);
  {
    using database = await openDatabase(path, known);
    database.exec("PRAGMA user_version = 1000");
  }
  await assert.rejects(
    readMetadata(place, SILENT),
    /schema version 1000, this larder knows versions up to \d+; start the newer larder/,
  );
});

Deno.test("openDatabase: a migration that fails changes nothing", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path, [first])).close();
  await assert.rejects(openDatabase(path, [first, broken]), /Cannot apply migration 0002_broken/);
  assert.equal(nameIn(path), "kept");
  (await openDatabase(path, [first, renaming])).close();
  assert.equal(nameIn(path), "changed");
});

Deno.test("openDatabase: a file that is no database is refused by its name, and kept", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const text = "not a database, but somebody's file ".repeat(100);
  Deno.writeTextFileSync(path, text);
  await assert.rejects(openDatabase(path), /Cannot open database .*db\.sqlite/);
  assert.equal(Deno.readTextFileSync(path), text);
});

for (const dialect of ["sqlite", "postgres"] as const) {
  Deno.test(`migrations of ${dialect}: numbered without gaps, each with its file`, () => {
    const migrations = readMigrations(dialect);
    const [first] = migrations;
    for (const [at, { version, name }] of migrations.entries()) {
      assert.equal(version, (first?.version ?? 0) + at);
      assert.match(name, new RegExp(`^${String(version).padStart(4, "0")}_[a-z_]+$`));
    }
  });
}

Deno.test("openDatabase: a database that is too old is refused with what to do", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path, [first])).close();
  await assert.rejects(
    openDatabase(path, [{ ...renaming, version: 3 }]),
    /schema version 1, this larder knows versions from 3 on; start a larder of that time, or give/,
  );
  assert.equal(nameIn(path), "kept");
});

function copiesIn(folder: string): readonly string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => /\.backup(\.|$)/.test(name));
}

function nameIn(path: string): unknown {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return database.prepare("SELECT name FROM thing").get()?.["name"];
  } finally {
    database.close();
  }
}

for (const umask of [0o000, 0o022, 0o777]) {
  Deno.test(`openDatabase: files are for their owner alone under umask ${umask.toString(8)}`, async () => {
    using folder = tempFolder();
    const path = `${folder.path}/db.sqlite`;
    const modes = () =>
      [...Deno.readDirSync(folder.path)].map(({ name }) =>
        `${name} ${((Deno.statSync(`${folder.path}/${name}`).mode ?? 0) & 0o777).toString(8)}`
      ).sort();
    const before = Deno.umask(umask);
    try {
      using database = await openDatabase(path, [first]);
      assert.equal(database.isOpen, true);
      assert.deepEqual(modes(), ["db.sqlite 600", "db.sqlite-shm 600", "db.sqlite-wal 600"]);
    } finally {
      Deno.umask(before);
    }
    Deno.umask(umask);
    try {
      (await openDatabase(path, [first, renaming])).close();
    } finally {
      Deno.umask(before);
    }
    assert.deepEqual(modes(), ["db.sqlite 600", "db.sqlite.schema-1.backup 600"]);
  });
}

Deno.test("openDatabase: a database that others may read is closed to them", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  using holder = await openDatabase(path, [first]);
  const files = ["", "-wal", "-shm"].map((end) => path + end);
  for (const file of files) Deno.chmodSync(file, 0o664);
  (await openDatabase(path, [first])).close();
  const modes = files.map((file) => (Deno.statSync(file).mode ?? 0) & 0o777);
  assert.deepEqual(modes, [0o600, 0o600, 0o600]);
  assert.equal(holder.isOpen, true);
});
