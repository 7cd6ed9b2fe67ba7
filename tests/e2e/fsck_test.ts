import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { damageTable } from "../support/damaged_table.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { runLarder } from "../support/run_larder.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { storedFileOf } from "../support/storage_look.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

const objects = ["gone", "short", "rotten", "whole"].map((name, seed) => (
  makeStoreObject({ name, seed, size: 30_000 })
));
const ORPHAN = `${"0".repeat(52)}.nar.xz`;

Deno.test("fsck: faults are found, mended with --repair, and fetched again", async () => {
  using folder = tempFolder();
  await using upstream = await fakeUpstream({ objects, stored: true });
  const { flags, narinfos } = await stoppedLarder(folder.path, upstream, objects);
  const paths = narinfos.map(({ narPath }) => (
    storedFileOf(folder.path, narPath.slice("/nar/".length))
  ));
  const fsck = async (...words: readonly string[]) => {
    const storage = ["--cache-storage-local", folder.path];
    const { status, out, err } = await runLarder(["fsck", "--json", ...storage, ...words]);
    const { problems, files } = JSON.parse(out);
    return { status, err, files, kinds: problems.map(({ kind }: { kind: string }) => kind).sort() };
  };
  assert.deepEqual(await fsck("--verify-content"), { status: 0, err: "", files: 4, kinds: [] });

  damage(folder.path, paths);

  const names = await fsck();
  assert.deepEqual([names.status, names.kinds], [1, ["damaged", "damaged", "stray", "sums"]]);
  const all = ["content", "damaged", "damaged", "stray", "sums"];
  assert.deepEqual((await fsck("--verify-content")).kinds, all);
  assert.deepEqual((await fsck("--verify-content", "--repair")).kinds, all);
  assert.deepEqual(await fsck("--verify-content"), { status: 0, err: "", files: 1, kinds: [] });

  await using larder = await startLarder(flags);
  for (const { storePathHash } of objects) {
    const narinfo = await servedNarinfo(larder.port, storePathHash);
    const answer = await servedNar(larder.port, narinfo);
    assert.equal(answer.status, 200);
    await checkNar(narinfo, answer.body);
  }
});

Deno.test("fsck: a damaged database is named, and no file goes because of it", async () => {
  using folder = tempFolder();
  await using upstream = await fakeUpstream({ objects, stored: true });
  const { narinfos } = await stoppedLarder(folder.path, upstream, objects);
  damageTable(`${folder.path}/db.sqlite`, "nar");
  const fsck = (...words: readonly string[]) =>
    runLarder(["fsck", "--cache-storage-local", folder.path, ...words]);

  const { status, out, err } = await fsck("--repair");
  assert.deepEqual([status, err], [1, ""]);
  assert.match(out, /^database: Tree \d+ /);
  assert.match(out, /\nNo NAR file was compared .*: stop larder, and restore a backup, .*\.\n$/);
  const { problems, files } = JSON.parse((await fsck("--json")).out);
  assert.deepEqual([files, problems[0].kind, problems[0].mended], [0, "database", false]);
  for (const { narPath } of narinfos) {
    Deno.statSync(storedFileOf(folder.path, narPath.slice("/nar/".length)));
  }
});

Deno.test("fsck: without a storage it names the missing database", async () => {
  using folder = tempFolder();
  const ran = await runLarder(["fsck", "--cache-storage-local", `${folder.path}/none`]);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /Cannot check .*db\.sqlite: .* --cache-storage-local/);
  const bad = await runLarder(["fsck", "--repiar"]);
  assert.equal(bad.status, 2);
});

Deno.test("fsck: its help lists its own flags, and where those of the server are", async () => {
  const { out } = await runLarder(["fsck", "--help"]);
  for (const flag of ["--verify-content", "--repair", "larder serve --help"]) {
    assert.ok(out.includes(flag), flag);
  }
});

/** The first is gone, the second short, the third has other bytes, and one is nobody's. */
function damage(storage: string, [gone = "", short = "", rotten = ""]: readonly string[]): void {
  Deno.removeSync(gone);
  Deno.truncateSync(short, 100);
  const bytes = Deno.readFileSync(rotten);
  bytes[20_000] = (bytes[20_000] ?? 0) ^ 1;
  Deno.writeFileSync(rotten, bytes);
  Deno.mkdirSync(`${storage}/nar/00`, { recursive: true });
  Deno.writeTextFileSync(`${storage}/nar/00/${ORPHAN}`, "nobody's");
  using database = new DatabaseSync(`${storage}/db.sqlite`);
  database.exec("UPDATE stock SET kept_bytes = kept_bytes + 1");
}
