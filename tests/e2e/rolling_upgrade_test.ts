import assert from "node:assert/strict";
import { readMigrations } from "../../src/metadata/migrations.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { testUnless, testWhere } from "../support/program.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { isOfSlowness } from "../support/slow_machine.ts";
import { tempFolder } from "../support/temp_folder.ts";

const ROOT = new URL("../..", import.meta.url).pathname;

const postgres = PostgresServer.start();
const objects = Array.from({ length: 3 }, (_, seed) => (
  makeStoreObject({ name: "rolled", size: 50_000, seed })
));
const hashes = objects.map(({ storePathHash }) => storePathHash);

Deno.test("rolling upgrade: the document has a row for each schema of both databases", () => {
  const page = Deno.readTextFileSync(`${ROOT}docs/upgrading.md`);
  const rows = [...page.matchAll(/^\| (\d+) \| (\d+) \|/gm)];
  for (const [at, dialect] of (["sqlite", "postgres"] as const).entries()) {
    const listed = rows.map((row) => Number(row[at + 1]));
    assert.deepEqual(listed, readMigrations(dialect).map(({ version }) => version), dialect);
  }
});

for (const dialect of ["sqlite", "postgres"] as const) {
  const migrations = readMigrations(dialect);
  const [before, newest] = migrations.slice(-2);
  // One schema alone has none before it.
  if (before === undefined || newest === undefined) continue;
  const commit = commitBefore(`src/metadata/schema/${newest.name}.${dialect}.sql`);
  const excuse = commit === undefined ? "git has no history here" : "";
  const missing = dialect === "postgres" ? postgresMissing : "";
  const register = missing === "" ? testWhere : testUnless;
  register(
    missing || excuse,
    `rolling upgrade on ${dialect}: a larder of the commit before runs on beside this one, and ` +
      "cannot start again",
    async () => {
      using source = tempFolder();
      checkOut(commit ?? "", source.path);
      await using upstream = await fakeUpstream({ objects, stored: true });
      using storage = tempFolder();
      const flags = {
        "cache-storage-local": storage.path,
        "cache-hostname": "rolled",
        "cache-upstream-url": upstream.url,
        "cache-upstream-public-key": upstream.publicKey,
        "cache-database-url": dialect === "postgres"
          ? postgres?.createDatabase() ?? ""
          : `sqlite:${storage.path}/db.sqlite`,
        ...LONG_TIMEOUTS,
      };
      const startOlder = () => startLarder(flags, {}, [], `${source.path}/main.ts`);
      await using older = await startOlder();
      const [first = "", second = "", third = ""] = hashes;
      await keep(older.port, first);

      await using newer = await startLarder(flags);
      const { from, to, backup } = await newer.logged("database migrated");
      assert.deepEqual({ from, to, backup }, {
        from: before.version,
        to: newest.version,
        backup: dialect === "sqlite"
          ? `${storage.path}/db.sqlite.schema-${before.version}.backup`
          : undefined,
      });

      await pull(newer.port, first);
      await keep(older.port, second);
      await pull(newer.port, second);
      await keep(newer.port, third);
      await pull(older.port, third);
      assert.equal(upstream.count(/^\/nar\//), objects.length);

      older.kill("SIGTERM");
      assert.equal((await older.ended).code, 0);
      await assert.rejects(startOlder(), /start the newer larder, or restore a backup/);
      for (const hash of hashes) assert.equal(await pull(newer.port, hash), "HIT");
      const complaints = [...older.lines, ...newer.lines]
        .filter((line) => /^(?:warn|error)$/.test(line.level) && !isOfSlowness(line));
      assert.deepEqual(complaints, []);
    },
  );
}

/** Pulls a path until this larder has kept it. */
async function keep(port: number, hash: string): Promise<void> {
  await eventually("the NAR is kept", async () => await pull(port, hash) === "HIT");
}

/** Resolves with where the NAR came from. */
async function pull(port: number, hash: string): Promise<string | null> {
  const narinfo = await servedNarinfo(port, hash);
  const answer = await servedNar(port, narinfo);
  assert.equal(answer.status, 200);
  await checkNar(narinfo, answer.body);
  return answer.headers.get("x-cache");
}

/** The commit before the one that added this file; `undefined` where git does not know it. */
function commitBefore(file: string): string | undefined {
  const added = git("log", "-1", "--diff-filter=A", "--format=%H", "--", file);
  return added && git("rev-parse", "--verify", "--quiet", `${added}^`);
}

/** Writes the sources of a commit into a folder. The packages are those of today. */
function checkOut(commit: string, folder: string): void {
  const archive = `${folder}/source.tar`;
  assert.equal(git("archive", "--output", archive, commit, "main.ts", "deno.json", "src"), "");
  const { success } = new Deno.Command("tar", { args: ["-xf", archive, "-C", folder] })
    .outputSync();
  assert.ok(success);
}

function git(...args: readonly string[]): string | undefined {
  try {
    const { success, stdout } = new Deno.Command("git", { args: ["-C", ROOT, ...args] })
      .outputSync();
    return success ? new TextDecoder().decode(stdout).trim() : undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
