import assert from "node:assert/strict";
import type { Change, RowLister } from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { eventually } from "../support/eventually.ts";
import { type LarderFlags, larderProcess, startLarder } from "../support/larder_process.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { queryPostgres } from "../support/postgres_programs.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { testUnless } from "../support/program.ts";
import { runLarder } from "../support/run_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = PostgresServer.start();
const [a, b] = [hash("a"), hash("b")];

/** Rows that take a second or more. */
const [PAGES, PAGE] = [6, 500];

testUnless(
  postgresMissing,
  "migrate: the database of a used storage moves to PostgreSQL, and so do rows that come meanwhile",
  async () => {
    assert.ok(server);
    using folder = tempFolder();
    const from = `${folder.path}/db.sqlite`;
    const to = server.createDatabase();
    await using used = new SqliteMetadataStore(await openDatabase(from));
    const recompressed = { ...fileOf(narOf(a).name), form: "zstd" } as const;
    await used.apply([put(a, [b], 1), ...keep(recompressed, 1)]);

    const first = await runLarder(["migrate", "database", `sqlite:${from}`, to]);
    assert.equal(firstLineOf(first.out), "1 row copied, 1 compared: both databases are the same.");
    assert.equal(first.status, 0);
    await used.apply([put(b, [], 2)]);
    const second = await runLarder(["migrate", "database", `sqlite:${from}`, to]);
    assert.equal(firstLineOf(second.out), "1 row copied, 2 compared: both databases are the same.");

    await using moved = await openPostgresStore(to);
    assert.deepEqual(await moved.findNarinfo(b), await used.findNarinfo(b));
    assert.deepEqual(await moved.keptNars(""), await used.keptNars(""));
    assert.equal((await moved.findNar(narOf(a).name))?.kept?.form, "zstd");
  },
);

testUnless(
  postgresMissing,
  "migrate: rows removed meanwhile are removed there, and do not come back",
  async () => {
    assert.ok(server);
    using folder = tempFolder();
    const [from, to] = [`sqlite:${folder.path}/db.sqlite`, server.createDatabase()];
    await using used = new SqliteMetadataStore(await openDatabase(`${folder.path}/db.sqlite`));
    await used.apply([put(a, [], 1), put(b, [], 2), pin(a), pin(b)]);
    assert.match((await migrate(from, to)).out, /^4 rows copied, 4 compared: both .* the same/);
    await used.apply([
      { kind: "remove-pin", storePathHash: a },
      { kind: "remove-narinfo", storePathHash: a },
    ]);

    const second = await migrate(from, to);
    assert.equal(
      firstLineOf(second.out),
      "0 rows copied, 2 removed, 3 compared: both databases are the same.",
    );
    {
      await using moved = await openPostgresStore(to);
      assert.deepEqual((await moved.pins()).map(({ storePathHash }) => storePathHash), [b]);
      assert.equal(await moved.findNarinfo(a), undefined);
    }
    const back = `sqlite:${folder.path}/back.sqlite`;
    assert.equal((await migrate(to, back)).status, 0);
    await using returned = new SqliteMetadataStore(
      await openDatabase(`${folder.path}/back.sqlite`),
    );
    assert.deepEqual(await returned.pins(), await used.pins());
  },
);

testUnless(
  postgresMissing,
  "migrate: a database with rows of its own is refused, and so is a copy once it was used",
  async () => {
    assert.ok(server);
    using folder = tempFolder();
    const [from, to] = [`sqlite:${folder.path}/db.sqlite`, server.createDatabase()];
    await using used = new SqliteMetadataStore(await openDatabase(`${folder.path}/db.sqlite`));
    await used.apply([put(a, [], 1)]);
    {
      await using own = await openPostgresStore(to);
      await own.apply([put(b, [], 1), pin(b)]);
    }
    const hint = "give an empty database";
    const refused = await migrate(from, to);
    assert.equal(refused.status, 1);
    assert.match(refused.err, new RegExp(`the new one has rows of its own; ${hint}`));
    {
      await using own = await openPostgresStore(to);
      assert.ok(await own.findPin(b));
      assert.ok(await own.findNarinfo(b));
    }

    const copy = server.createDatabase();
    assert.equal((await migrate(from, copy)).status, 0);
    {
      await using larder = await startLarder({ "cache-database-url": copy });
      const running = await migrate(from, copy);
      assert.match(running.err, /Cannot migrate database: larder .* uses the new one; stop it/);
      larder.kill("SIGTERM");
      await larder.ended;
    }
    const later = await migrate(from, copy);
    assert.match(later.err, new RegExp(`the new one has rows of its own; ${hint}`));
  },
);

testUnless(
  postgresMissing,
  "migrate: a larder on the SQLite that PostgreSQL became signs with the same key",
  async () => {
    assert.ok(server);
    using folder = tempFolder();
    const from = server.createDatabase();
    const to = `sqlite:${folder.path}/db.sqlite`;
    const key = await publicKeyOf({ "cache-database-url": from });

    const { out, status } = await migrate(from, to);
    assert.equal(status, 0);
    assert.equal(keyLineOf(out), keyLine(`${folder.path}/secret-key`));
    assert.equal((Deno.statSync(`${folder.path}/secret-key`).mode ?? 0) & 0o777, 0o600);
    const flags = { "cache-database-url": to, "cache-storage-local": folder.path };
    assert.equal(await publicKeyOf(flags), key);
  },
);

testUnless(
  postgresMissing,
  "migrate: it says how a larder with another storage gets the signing key, and that one signs",
  async () => {
    assert.ok(server);
    using folder = tempFolder();
    const key = await publicKeyOf({ "cache-storage-local": folder.path });
    const to = server.createDatabase();
    const path = `${folder.path}/secret-key`;

    const { out } = await migrate(`sqlite:${folder.path}/db.sqlite`, to);
    assert.equal(keyLineOf(out), keyLine(path));
    assert.equal(
      await publicKeyOf({ "cache-database-url": to, "cache-secret-key-path": path }),
      key,
    );
    using apart = tempFolder();
    Deno.renameSync(`${folder.path}/db.sqlite`, `${apart.path}/db.sqlite`);
    const elsewhere = await migrate(`sqlite:${apart.path}/db.sqlite`, server.createDatabase());
    assert.match(
      keyLineOf(elsewhere.out) ?? "",
      /not beside .* needs --cache-secret-key-path=FILE/,
    );
  },
);

testUnless(
  postgresMissing,
  "migrate: another signing key beside the new SQLite stays, and ends it",
  async () => {
    assert.ok(server);
    using folder = tempFolder();
    const from = server.createDatabase();
    await publicKeyOf({ "cache-database-url": from });
    const path = `${folder.path}/secret-key`;
    const text = `${generateSecretKey("mine").text}\n`;
    Deno.writeTextFileSync(path, text);

    const { err, status } = await migrate(from, `sqlite:${folder.path}/db.sqlite`);
    assert.equal(status, 1);
    assert.match(err, new RegExp(`${path} has another signing key than the old one; move that`));
    assert.equal(Deno.readTextFileSync(path), text);
  },
);

/** Each new narinfo takes 5 ms, so that a signal comes in the middle. */
const SLOW_ROWS = `
  CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_sleep(0.005); RETURN NEW; END';
  CREATE TRIGGER slow BEFORE INSERT ON narinfo FOR EACH ROW EXECUTE FUNCTION slow();
`;

for (const signal of ["SIGINT", "SIGKILL"] as const) {
  testUnless(
    postgresMissing,
    `migrate: after ${signal} in the middle, a second run goes on and makes both the same`,
    async () => {
      assert.ok(server);
      using folder = tempFolder();
      const [from, to] = [`sqlite:${folder.path}/db.sqlite`, await server.createMigrated()];
      await using used = new SqliteMetadataStore(await openDatabase(`${folder.path}/db.sqlite`));
      for (let page = 0; page < PAGES; page++) {
        const paths = Array.from({ length: PAGE }, (_, at) => hash(`${page * PAGE + at}`));
        await used.apply(paths.map((path) => put(path, [], 1)));
      }
      queryPostgres(to, SLOW_ROWS);
      const child = larderProcess(["migrate", "database", from, to]);
      await using moved = await openPostgresStore(to);
      await eventually("some rows are copied", async () => (await rowsIn(moved)) > 0);
      endBy(child, signal);
      const { code, stderr } = await child.output();
      const copied = await rowsIn(moved);

      assert.ok(copied > 0, `${copied}`);
      assert.ok(copied < PAGES * PAGE, "the signal came in the middle");
      queryPostgres(to, "DROP TRIGGER slow ON narinfo");
      if (signal === "SIGINT") {
        const said = new TextDecoder().decode(stderr);
        assert.match(said, /larder: stopped; run it again to go on\n$/);
        assert.doesNotMatch(said, /Error|at /);
        assert.equal(code, 1);
      }
      const second = await migrate(from, to);
      assert.equal(second.status, 0, second.err);
      const report = /^([\d,]+) rows copied, 3000 compared: both databases are the same/;
      const copiedThen = Number(report.exec(second.out)?.[1]?.replace(",", ""));
      assert.ok(copiedThen < PAGES * PAGE, second.out);
      assert.equal(await rowsIn(moved), PAGES * PAGE);
      assert.equal(await moved.areSumsRight(), true);
    },
  );
}

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

/** It may have ended by itself. */
function endBy(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    child.kill(signal);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof Deno.errors.NotFound)) throw error;
  }
}

function firstLineOf(text: string): string | undefined {
  return text.split("\n")[0];
}

function keyLineOf(text: string): string | undefined {
  return text.split("\n")[1];
}

function keyLine(path: string): string {
  const option = `--cache-secret-key-path=${path}`;
  return `The signing key is in ${path}. A larder with another storage needs ${option}.`;
}

function migrate(from: string, to: string) {
  return runLarder(["migrate", "database", from, to]);
}

function pin(storePathHash: StorePathHash): Change {
  return { kind: "put-pin", pin: { storePathHash, pinnedAtMs: 3 } };
}

async function rowsIn(store: RowLister): Promise<number> {
  return (await store.listNarinfos("", 100_000)).length;
}

/** The key of a larder that runs for a moment. */
async function publicKeyOf(flags: LarderFlags): Promise<string> {
  await using larder = await startLarder(flags);
  const answer = await fetch(`http://127.0.0.1:${larder.port}/pubkey`);
  const key = await answer.text();
  larder.kill("SIGTERM");
  await larder.ended;
  return key;
}
