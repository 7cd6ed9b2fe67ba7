import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { fingerprintOf } from "../../src/nix/fingerprint.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { startLarder } from "../support/larder_process.ts";
import {
  hashIn,
  NCPS_KEYS,
  NCPS_KINDS,
  NCPS_PINNED,
  NCPS_UNAVAILABLE,
  NCPS_UPSTREAM_KEYS,
  type NcpsKind,
  type NcpsStorage,
  ncpsStorage,
} from "../support/ncps_storage.ts";
import { NIX_UNAVAILABLE, NixClient } from "../support/nix_client.ts";
import { testUnless } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { runLarder, withoutProgress } from "../support/run_larder.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { accountsOf, filesBelow, narBytesIn } from "../support/storage_look.ts";
import { tempFolder } from "../support/temp_folder.ts";

const NO_UPSTREAM = { "cache-upstream-url": "http://127.0.0.1:9" };
const PATHS = 11;

const runImport = (from: NcpsStorage, storage: string, ...words: readonly string[]) =>
  runLarder(["import", "ncps", from.folder, "--cache-storage-local", storage, ...words]);

for (const kind of NCPS_KINDS) {
  testUnless(
    NCPS_UNAVAILABLE,
    `import ncps: paths of a ${kind} one are served without an upstream, by its key`,
    async () => {
      using from = await ncpsStorage(kind);
      using storage = tempFolder();
      const ran = await runImport(from, storage.path);
      assert.deepEqual([ran.status, withoutProgress(ran.err)], [0, ""]);
      assert.match(ran.out, /imported 11 paths/);

      await using larder = await startLarder({
        ...NO_UPSTREAM,
        "cache-storage-local": storage.path,
      });
      for (const storePath of from.storePaths) await checkServed(larder.port, storePath, kind);
      const get = async (path: string) => await (await fetch(`${larder.url}${path}`)).text();
      assert.equal((await get("/pubkey")).trim(), NCPS_KEYS[kind]);
      assert.deepEqual(JSON.parse(await get("/pins")), [NCPS_PINNED]);
      const { keptFiles, countedBytes } = accountsOf(storage.path);
      assert.deepEqual([keptFiles, countedBytes], [PATHS - 1, narBytesIn(storage.path)]);
    },
  );

  testUnless(
    NCPS_UNAVAILABLE || NIX_UNAVAILABLE,
    `import ncps: a Nix that trusts the old key of a ${kind} one, or an upstream's, pulls on`,
    async () => {
      using from = await ncpsStorage(kind);
      using storage = tempFolder();
      assert.equal((await runImport(from, storage.path)).status, 0);
      await using larder = await startLarder({
        ...NO_UPSTREAM,
        "cache-storage-local": storage.path,
      });
      const top = from.storePaths.find((path) => hashIn(path) === NCPS_PINNED) ?? "";
      for (const key of [NCPS_KEYS[kind], ...NCPS_UPSTREAM_KEYS]) {
        using client = new NixClient();
        await client.copyFrom(top, { from: [larder.url], trust: [key] });
        assert.equal((await client.closureOf(top)).length, 4);
      }
    },
  );

  testUnless(
    NCPS_UNAVAILABLE,
    `import ncps: a broken NAR of a ${kind} one is listed and left, and comes once it is whole`,
    async () => {
      using from = await ncpsStorage(kind);
      using storage = tempFolder();
      const file = largestFile(`${from.folder}/store`);
      const bytes = Deno.readFileSync(file);
      Deno.writeFileSync(file, bytes.map((byte, at) => at === 5_000 ? byte ^ 1 : byte));

      const first = await runImport(from, storage.path);
      assert.deepEqual([first.status, first.out.includes("imported 10 paths")], [1, true]);
      assert.match(
        withoutProgress(first.err),
        /^larder: not imported:\n {2}\/nix\/store\/\S+: .+\n$/,
      );
      assert.deepEqual(accountsOf(storage.path).pending, []);
      const broken = /\/nix\/store\/\S+(?=:)/.exec(first.err)?.[0] ?? "";
      assert.ok(!accountsOf(storage.path).narinfos.has(hashIn(broken)), "its narinfo is not kept");

      Deno.writeFileSync(file, bytes);
      const second = await runImport(from, storage.path);
      assert.equal(second.status, 0);
      assert.match(second.out, /imported 1 path .*; 10 were here already/);
      const third = await runImport(from, storage.path);
      assert.match(third.out, /imported 0 paths \(0 B\); 11 were here already/);
    },
  );
}

testUnless(
  NCPS_UNAVAILABLE,
  "import ncps: a file with the NAR of another path is found",
  async () => {
    using from = await ncpsStorage("whole");
    using storage = tempFolder();
    const [one = "", other = ""] = [...filesBelow(`${from.folder}/store/nar`).keys()];
    Deno.copyFileSync(one, other);
    for (const handling of ["--copy", "--link"]) {
      const ran = await runImport(from, storage.path, handling);
      assert.equal(ran.status, 1);
      assert.match(ran.err, /its NAR is broken: the NAR(?:'s hash is| has)/);
    }
  },
);

testUnless(NCPS_UNAVAILABLE, "import ncps: it waits for no ncps that writes", async () => {
  using from = await ncpsStorage("chunked");
  using storage = tempFolder();
  using ncps = new DatabaseSync(from.databasePath);
  ncps.exec("BEGIN IMMEDIATE; UPDATE narinfos SET system = 'x'");
  assert.equal((await runImport(from, storage.path)).status, 0);
  ncps.exec("ROLLBACK");
  assert.equal(accountsOf(storage.path).narinfos.size, PATHS);
});

testUnless(NCPS_UNAVAILABLE, "import ncps: a last use is the one that ncps noted", async () => {
  using from = await ncpsStorage("whole");
  using storage = tempFolder();
  const hash = hashIn(from.storePaths[0] ?? "");
  {
    using ncps = new DatabaseSync(from.databasePath);
    const atAll = "2024-03-01 04:05:06.789+00:00";
    ncps.prepare("UPDATE narinfos SET last_accessed_at = ?, created_at = ?").run(atAll, atAll);
    ncps.prepare("UPDATE nar_files SET last_accessed_at = ?, created_at = ?").run(atAll, atAll);
    ncps.prepare("UPDATE narinfos SET last_accessed_at = ? WHERE hash = ?")
      .run("2026-05-06 07:08:09.123456789+00:00", hash);
  }
  await runImport(from, storage.path);
  const times = usesIn(storage.path);
  assert.equal(times.get(hash), Date.parse("2026-05-06T07:08:09.123Z"));
  times.delete(hash);
  assert.deepEqual([...new Set(times.values())], [Date.parse("2024-03-01T04:05:06.789Z")]);
});

testUnless(NCPS_UNAVAILABLE, "import ncps: below a limit the pinned closure comes", async () => {
  using from = await ncpsStorage("whole");
  using storage = tempFolder();
  const ran = await runImport(from, storage.path, "--cache-max-size", "640K");
  assert.equal(ran.status, 1);
  assert.match(ran.err, /no room for \d+ paths: raise --cache-max-size/);
  const { narinfos, countedBytes } = accountsOf(storage.path);
  assert.ok(countedBytes <= 640 * 1024, `${countedBytes} bytes`);
  assert.ok(narinfos.has(NCPS_PINNED) && narinfos.size >= 4, [...narinfos].join(" "));
});

testUnless(NCPS_UNAVAILABLE, "import ncps: --link shares files, --move takes them", async () => {
  using from = await ncpsStorage("whole");
  using linked = tempFolder();
  using moved = tempFolder();
  const before = filesBelow(`${from.folder}/store/nar`);
  assert.equal((await runImport(from, linked.path, "--link")).status, 0);
  const inodes = (folder: string) =>
    [...filesBelow(folder).keys()].map((path) => Deno.statSync(path).ino).sort();
  const ofNcps = inodes(`${from.folder}/store/nar`);
  assert.deepEqual(inodes(`${linked.path}/nar`), ofNcps);

  assert.equal((await runImport(from, moved.path, "--move")).status, 0);
  assert.deepEqual([before.size, filesBelow(`${from.folder}/store/nar`).size], [PATHS - 1, 0]);
  assert.deepEqual(inodes(`${moved.path}/nar`), ofNcps);
});

testUnless(NCPS_UNAVAILABLE, "import ncps: it runs while larder serves", async () => {
  using from = await ncpsStorage("chunked");
  await using larder = await startLarder(NO_UPSTREAM);
  const [storePath = ""] = from.storePaths;
  const path = `/${hashIn(storePath)}.narinfo`;
  assert.equal((await rawRequest(larder.port, requestText("GET", path))).status, 404);
  const ownKey = Deno.readTextFileSync(`${larder.storage}/secret-key`);

  const ran = await runImport(from, larder.storage);
  assert.equal(ran.status, 0);
  assert.match(ran.out, /secret-key holds another key, and stays/);
  assert.equal(Deno.readTextFileSync(`${larder.storage}/secret-key`), ownKey);
  for (const other of from.storePaths.slice(1)) await checkServed(larder.port, other, "chunked");
});

testUnless(NCPS_UNAVAILABLE, "import ncps: unsigned paths stay without the option", async () => {
  using from = await ncpsStorage("whole");
  using storage = tempFolder();
  {
    using ncps = new DatabaseSync(from.databasePath);
    ncps.exec("DELETE FROM narinfo_signatures WHERE narinfo_id = 1");
  }
  const ran = await runImport(from, storage.path);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /no trusted key has signed it/);
  const option = "--cache-require-upstream-signature=false";
  assert.equal((await runImport(from, storage.path, option)).status, 0);
  await using larder = await startLarder({ ...NO_UPSTREAM, "cache-storage-local": storage.path });
  const text = await (await fetch(`${larder.url}/${NCPS_PINNED}.narinfo`)).text();
  assert.ok(text.includes("StorePath: ") && !text.includes("Sig: "), text);
});

Deno.test("import ncps: an unusable input is a sentence, and changes nothing", async () => {
  using storage = tempFolder();
  const from = { folder: storage.path } as NcpsStorage;
  const ran = await runImport(from, `${storage.path}/larder`);
  assert.deepEqual([ran.status, ran.out], [1, ""]);
  assert.match(ran.err, /^larder: Cannot import .*: it has no store\/nar; give .*\n$/);
  Deno.mkdirSync(`${storage.path}/store/nar`, { recursive: true });
  const postgres = await runImport(from, storage.path, "--database", "postgres://u:secret@h/db");
  assert.match(postgres.err, /larder reads the SQLite database of an ncps only/);
  assert.ok(!postgres.err.includes("secret"));
  const path = await runImport(from, storage.path, "--database", "/db.sqlite");
  assert.match(path.err, /Cannot use --database \/db\.sqlite: .*; write sqlite:\/PATH\n$/);
  assert.equal((await runImport(from, storage.path, "--link", "--move")).status, 2);
  assert.equal((await runLarder(["import", "ncsp", "x"])).status, 2);
  assert.equal((await runLarder(["import", "ncps"])).status, 2);
});

/** Fails unless narinfo and NAR are served from disk, signed by ncps and by both upstreams. */
async function checkServed(port: number, storePath: string, kind: NcpsKind): Promise<void> {
  const path = `/${hashIn(storePath)}.narinfo`;
  const { body } = await rawRequest(port, requestText("GET", path));
  const narinfo = parseNarinfo(new TextDecoder().decode(body));
  assert.equal(narinfo.storePath, storePath);
  for (const key of [NCPS_KEYS[kind], ...NCPS_UPSTREAM_KEYS].map(parsePublicKey)) {
    const ofKey = narinfo.signatures.filter(({ keyName }) => keyName === key.name);
    assert.ok(ofKey.some((one) => key.verify(fingerprintOf(narinfo), one)), key.text);
  }
  const texts = narinfo.signatures.map(({ text }) => text);
  assert.equal(new Set(texts).size, texts.length, "no signature is there twice");
  const answer = await servedNar(port, await servedNarinfo(port, hashIn(storePath)));
  assert.deepEqual([answer.status, answer.headers.get("x-cache")], [200, "HIT"]);
}

function largestFile(folder: string): string {
  const [first] = [...filesBelow(folder)].sort(([, one], [, other]) => other - one);
  return first?.[0] ?? "";
}

/** The last uses of narinfos by store path hash. */
function usesIn(storage: string): Map<string, number> {
  using database = new DatabaseSync(`${storage}/db.sqlite`, { readOnly: true });
  const sql = "SELECT hash, used_at_ms FROM narinfo_use JOIN path ON id = path_id";
  return new Map(
    database.prepare(sql).all().map((row) => [String(row["hash"]), Number(row["used_at_ms"])]),
  );
}
