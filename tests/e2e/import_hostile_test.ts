import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { writeBinaryCache } from "../support/binary_cache_folder.ts";
import { startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless, testWhere } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { runLarder, withoutProgress } from "../support/run_larder.ts";
import { servedNarinfo } from "../support/served_nar.ts";
import { accountsOf, filesBelow } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const NO_ROOT = Deno.uid() === 0 ? "" : "only root gives files away";
const NO_FIFO = programsMissing("mkfifo");
const OBJECT = makeStoreObject({ name: "object" });
const OTHER = makeStoreObject({ name: "other" });
const ANY_SIGNER = "--cache-require-upstream-signature=false";

/** A binary cache of one or both objects, and a storage. */
async function scene(objects = [OBJECT]) {
  using opened = new DisposableStack();
  const { path } = opened.use(tempFolder());
  const from = `${path}/cache`;
  await writeBinaryCache(from, objects);
  const storage = `${path}/larder`;
  const [narFile = ""] = filesBelow(`${from}/nar`).keys();
  const held = opened.move();
  return {
    ...{ path, from, storage, narFile, narinfo: `${from}/${OBJECT.storePathHash}.narinfo` },
    run: (...words: readonly string[]) =>
      runLarder([
        ...["import", "cache", `file://${from}`, "--cache-storage-local", storage, ANY_SIGNER],
        ...words,
      ]),
    [Symbol.dispose]: () => held.dispose(),
  };
}

for (const handling of ["--link", "--move"]) {
  Deno.test(`import ${handling}: a holder's write in the second of it is not served`, async () => {
    using cache = await scene();
    using held = Deno.openSync(cache.narFile, { read: true, write: true });
    const { size, mtime } = held.statSync();
    assert.equal((await cache.run(handling)).status, 0);

    held.writeSync(new Uint8Array(size).fill(7));
    held.utimeSync(mtime ?? 0, mtime ?? 0);

    const options = { "cache-storage-local": cache.storage };
    await using larder = await startLarder({
      ...options,
      "cache-upstream-url": "http://127.0.0.1:9",
      "cache-require-upstream-signature": "false",
    });
    const found = await rawRequest(
      larder.port,
      requestText("GET", `/${OBJECT.storePathHash}.narinfo`),
    );
    assert.equal(found.status, 200);
    const { narPath } = await servedNarinfo(larder.port, OBJECT.storePathHash);
    const answer = await rawRequest(larder.port, requestText("GET", narPath));
    assert.equal(answer.status, 404);
  });

  Deno.test(`import ${handling}: the file is larder's own, and for nobody else`, async () => {
    using cache = await scene();
    Deno.chmodSync(cache.narFile, 0o666);
    assert.equal((await cache.run(handling)).status, 0);
    const [stored = ""] = filesBelow(`${cache.storage}/nar`).keys();
    assert.equal((Deno.statSync(stored).mode ?? 0) & 0o777, 0o600);
  });

  testWhere(NO_ROOT, `import ${handling}: a file of another user is copied`, async () => {
    using cache = await scene();
    Deno.chownSync(cache.narFile, 1234, 1234);
    const { ino } = Deno.statSync(cache.narFile);
    assert.equal((await cache.run(handling)).status, 0);
    const [stored = ""] = filesBelow(`${cache.storage}/nar`).keys();
    const info = Deno.statSync(stored);
    assert.deepEqual([info.ino === ino, info.uid, info.nlink], [false, Deno.uid(), 1]);
  });
}

for (const handling of ["--copy", "--link", "--move"]) {
  Deno.test(`import ${handling}: a NAR that is a symbolic link is listed and left`, async () => {
    using cache = await scene();
    const elsewhere = `${cache.path}/elsewhere`;
    Deno.renameSync(cache.narFile, elsewhere);
    Deno.symlinkSync(elsewhere, cache.narFile);
    const ran = await cache.run(handling);
    assert.equal(ran.status, 1);
    assert.match(ran.err, /it is a symbolic link, not a regular file/);
    assert.ok(Deno.statSync(elsewhere).isFile);
    assert.equal(accountsOf(cache.storage).narinfos.size, 0);
  });

  Deno.test(`import ${handling}: a folder that is a link brings nothing`, async () => {
    using cache = await scene();
    Deno.renameSync(`${cache.from}/nar`, `${cache.path}/elsewhere`);
    Deno.symlinkSync(`${cache.path}/elsewhere`, `${cache.from}/nar`);
    for (let round = 0; round < 2; round++) {
      const ran = await cache.run(handling);
      assert.equal(ran.status, 1);
      assert.match(ran.err, /a link in its path leads out of the folder/);
      assert.equal(filesBelow(`${cache.path}/elsewhere`).size, 1);
      // The second time it has the path already.
      const copy = `${cache.path}/copy`;
      if (round > 0) break;
      Deno.removeSync(`${cache.from}/nar`);
      Deno.mkdirSync(`${cache.from}/nar`);
      const [file = ""] = filesBelow(`${cache.path}/elsewhere`).keys();
      Deno.copyFileSync(file, `${cache.from}/nar/${file.split("/").at(-1)}`);
      if (handling !== "--move") break;
      Deno.copyFileSync(file, copy);
      assert.equal((await cache.run("--copy")).status, 0);
      Deno.removeSync(`${cache.from}/nar`, { recursive: true });
      Deno.symlinkSync(`${cache.path}/elsewhere`, `${cache.from}/nar`);
    }
  });
}

/** Kinds of hostile narinfos and NAR files, beside a good entry. */
const HOSTILE: readonly (readonly [name: string, make: (path: string) => void, said: RegExp])[] = [
  ["a FIFO", makeFifo, /it is a FIFO, not a regular file/],
  ["a link to /dev/zero", (path) => Deno.symlinkSync("/dev/zero", path), /it is a symbolic link/],
  ["a folder", (path) => Deno.mkdirSync(path), /it is a folder, not a regular file/],
  ["a sparse file of 3 GB", sparse, /it is larger than 2\.0 MiB|is too large for its NAR/],
];

for (const [what, make, said] of HOSTILE) {
  for (const part of ["narinfo", "narFile"] as const) {
    testUnless(
      make === makeFifo ? NO_FIFO : "",
      `import cache: ${what} as ${
        part === "narinfo" ? "narinfo" : "NAR"
      } is listed, the rest comes`,
      async () => {
        using cache = await scene([OBJECT, OTHER]);
        const place = part === "narinfo" ? cache.narinfo : narFileOf(cache);
        Deno.removeSync(place);
        make(place);
        const ran = await cache.run();
        assert.equal(ran.status, 1);
        assert.match(ran.err, said);
        assert.equal(accountsOf(cache.storage).narinfos.size, 1);
      },
    );
  }
}

testUnless(NO_FIFO, "import nginx: a FIFO is listed, and the import ends", async () => {
  using folder = tempFolder();
  const nginx = `${folder.path}/nginx`;
  Deno.mkdirSync(nginx);
  makeFifo(`${nginx}/${"0".repeat(32)}`);
  Deno.symlinkSync("/dev/zero", `${nginx}/${"1".repeat(32)}`);
  const head = "\nKEY: http://cache.example/" + `${OBJECT.storePathHash}.narinfo` +
    "\nHTTP/1.1 200 OK\r\nserver: x\r\n\r\nno narinfo";
  Deno.writeTextFileSync(`${nginx}/${"2".repeat(32)}`, head);
  const ran = await runLarder([
    ...["import", "nginx", nginx, "--cache-storage-local", `${folder.path}/larder`, ANY_SIGNER],
  ]);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /it is a FIFO, not a regular file/);
  assert.match(ran.err, /it is a symbolic link, not a regular file/);
});

/** Each makes the database of an ncps hostile. */
const DATABASES: readonly (readonly [name: string, sql: string, said: RegExp])[] = [
  [
    "a view with an endless query",
    `DROP TABLE narinfos; CREATE VIEW narinfos AS WITH RECURSIVE n (id) AS
       (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, id AS hash FROM n`,
    /its narinfos is no table/,
  ],
  [
    "an endless view of references",
    `DROP TABLE narinfo_references; CREATE VIEW narinfo_references AS WITH RECURSIVE n (id) AS
       (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id AS narinfo_id, 'x' AS reference FROM n`,
    /its narinfo_references is no table/,
  ],
  [
    "a computed column",
    "ALTER TABLE narinfos ADD COLUMN big AS (zeroblob(900000000))",
    /its narinfos has a computed column/,
  ],
  [
    "a text of 800 MB",
    "UPDATE narinfos SET deriver = CAST(zeroblob(800000000) AS TEXT)",
    /its deriver is a blob, or longer than 64 KiB/,
  ],
  [
    "a hash of 800 MB",
    "UPDATE narinfos SET hash = CAST(zeroblob(800000000) AS TEXT)",
    /it has a hash that is too long/,
  ],
  [
    "references of 170 MB",
    `WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 2800)
     INSERT INTO narinfo_references SELECT narinfos.id, printf('%060000d', at) FROM narinfos, n`,
    /it has rows of more than 128\.0 MiB/,
  ],
  [
    "an id of 2^63-1",
    "UPDATE narinfos SET id = 9223372036854775807",
    /ncps has no NAR file of it/,
  ],
];

for (const [what, sql, said] of DATABASES) {
  Deno.test(`import ncps: ${what} is a sentence`, async () => {
    using folder = tempFolder();
    const path = ncpsWith(folder.path, sql);
    const ran = await importNcps(folder.path, path);
    assert.equal(ran.status, 1);
    assert.match(withoutProgress(ran.err), said);
    assert.ok(!/\n {4}at /.test(ran.err), "a stack trace");
  });
}

testUnless(NO_FIFO, "import ncps: a database that is no regular file is a sentence", async () => {
  using folder = tempFolder();
  ncpsWith(folder.path, "");
  const database = `${folder.path}/other`;
  for (const make of [makeFifo, (path: string) => Deno.symlinkSync("/dev/zero", path)]) {
    make(database);
    const ran = await importNcps(folder.path, database);
    assert.equal(ran.status, 1);
    assert.match(ran.err, /it is a (FIFO|device), not a regular file/);
    Deno.removeSync(database);
  }
});

function importNcps(folder: string, databasePath: string) {
  return runLarder([
    ...["import", "ncps", folder, "--database", `sqlite:${databasePath}`, ANY_SIGNER],
    ...["--cache-storage-local", `${folder}/larder`],
  ]);
}

/** The storage of an ncps with one narinfo. Returns the path of its database. */
function ncpsWith(folder: string, sql: string): string {
  Deno.mkdirSync(`${folder}/store/nar`, { recursive: true });
  const path = `${folder}/db.sqlite`;
  using database = new DatabaseSync(path);
  database.exec(`
    CREATE TABLE narinfos (id INTEGER PRIMARY KEY, hash TEXT, store_path TEXT, compression TEXT,
      file_hash TEXT, file_size INTEGER, nar_hash TEXT, nar_size INTEGER, deriver TEXT, system TEXT,
      ca TEXT, last_accessed_at TEXT, created_at TEXT);
    CREATE TABLE narinfo_references (narinfo_id INTEGER, reference TEXT);
    CREATE TABLE narinfo_signatures (id INTEGER, narinfo_id INTEGER, signature TEXT);
    CREATE TABLE narinfo_nar_files (narinfo_id INTEGER, nar_file_id INTEGER);
    CREATE TABLE nar_files (id INTEGER PRIMARY KEY, hash TEXT, compression TEXT,
      total_chunks INTEGER, last_accessed_at TEXT);
    INSERT INTO narinfos (id, hash, store_path) VALUES
      (1, '${OBJECT.storePathHash}', '${OBJECT.storePath}');
  `);
  database.exec(sql);
  return path;
}

/** The NAR file of OBJECT. */
function narFileOf({ from, narinfo }: { readonly from: string; readonly narinfo: string }): string {
  return `${from}/${/^URL: (.*)$/m.exec(Deno.readTextFileSync(narinfo))?.[1]}`;
}

function makeFifo(path: string): void {
  new Deno.Command("mkfifo", { args: [path] }).outputSync();
}

function sparse(path: string): void {
  using file = Deno.createSync(path);
  file.truncateSync(3_000_000_000);
}
