import assert from "node:assert/strict";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { generateSecretKey, parseSecretKey } from "../../src/nix/signature.ts";
import { formatFormerNames } from "../../src/nix/former_names.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { type NarStem, stemOf } from "../../src/nix/nar_name.ts";
import { decompress } from "../support/decompressors.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { recompressed } from "../support/recompressed.ts";
import { runLarder } from "../support/run_larder.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { servedNarinfo } from "../support/served_nar.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { AS_WRITER, pushOf, WRITE_TOKEN } from "../support/uploading.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

// Each line is a lie about the names of a NAR: the file hash of another one.
const LIES = {
  "names that nobody has signed": (stem) => `${stem} builder-1:${"A".repeat(86)}==\n`,
  "names that an unknown key has signed": (stem, { object }) =>
    formatFormerNames(generateSecretKey("liar-1"), object, [stem]),
  "names that another key of a trusted name has signed": (stem, { object, keyName }) =>
    formatFormerNames(generateSecretKey(keyName), object, [stem]),
  "the signed names of that other one": (_stem, { others }) => others,
} satisfies Readonly<Record<string, (stem: NarStem, lie: Lie) => string>>;

interface Lie {
  readonly object: StoreObject;
  /** The key of the larder that exported the NARs. */
  readonly keyName: string;
  /** The names of the other NAR in the export. */
  readonly others: string;
}

// Each line is a NAR. `from`: who brought it to the first larder, and in which compression. `kept`:
// what that one has of it when it is exported. `told`: the endings that its narinfo has had. Another
// larder imports the export, and answers each of these names without an upstream.
const NARS = `
from           kept  told
upstream xz    came  xz zst
upstream xz    zstd  xz zst
upstream bzip2 came  bz2 zst
upstream bzip2 zstd  bz2 zst
upstream none  came  nar zst
upstream none  zstd  nar zst
upload xz      came  xz zst
upload xz      zstd  xz zst
upload bzip2   zstd  bz2 zst
upload none    zstd  nar zst
upload zstd    came  zst
`;

const NO_UPSTREAM = { "cache-upstream-url": "http://127.0.0.1:9" };

interface Cell {
  readonly name: string;
  readonly from: string;
  readonly compression: Compression;
  readonly isZstd: boolean;
  readonly endings: readonly string[];
  readonly object: StoreObject;
}

const CELLS: readonly Cell[] = NARS.trim().split("\n").slice(1).map((line, seed) => {
  const [, from = "", compression = "", kept = "", told = ""] =
    /^(\S+) (\S+) +(\S+) +(.*)$/.exec(line) ?? [];
  return {
    ...{ name: `${from} ${compression}, kept: ${kept}`, from, isZstd: kept === "zstd" },
    compression: compression as Compression,
    endings: told.split(" "),
    object: makeStoreObject({ name: `nar-${seed}`, size: 300_000, seed }),
  };
});

interface Told {
  readonly cell: Cell;
  readonly compression: Compression;
  readonly path: string;
}

interface Exported {
  /** Everything that clients of the larder were told. */
  readonly told: readonly Told[];
  /** Those of the upstream and of the larder. */
  readonly keys: readonly string[];
}

/** A storage with all NARs, and a folder with its export. */
async function exported(storage: string, folder: string): Promise<Exported> {
  const keys: string[] = [];
  const firstPaths = new Map<Cell, string>();
  for (const [compression, cells] of Map.groupBy(CELLS, ({ compression }) => compression)) {
    const pulled = cells.filter(({ from }) => from === "upstream");
    if (pulled.length === 0) continue;
    const objects = pulled.map(({ object }) => object);
    await using upstream = await fakeUpstream({ objects, compression });
    const { narinfos } = await stoppedLarder(storage, upstream, objects);
    pulled.forEach((cell, at) => firstPaths.set(cell, narinfos[at]?.narPath ?? ""));
    keys.push(upstream.publicKey);
  }
  {
    const flags = { "cache-storage-local": storage, "cache-put-token": WRITE_TOKEN.secret };
    await using larder = await startLarder({
      ...NO_UPSTREAM,
      ...flags,
      "cache-allow-put-verb": "true",
    });
    for (const cell of CELLS.filter(({ from }) => from === "upload")) {
      const { file, narPath, narinfoPath, narinfo } = await pushOf(cell.object, cell);
      for (const [path, body] of [[narPath, file.bytes], [narinfoPath, narinfo]] as const) {
        const answer = await fetch(larder.url + path, { method: "PUT", body, headers: AS_WRITER });
        assert.ok(answer.ok, await answer.text());
      }
      firstPaths.set(cell, (await servedNarinfo(larder.port, cell.object.storePathHash)).narPath);
    }
    larder.kill("SIGTERM");
    await larder.ended;
  }
  await using metadata = new SqliteMetadataStore(await openDatabase(`${storage}/db.sqlite`));
  const nars = new LocalNarStore(`${storage}/nar`);
  for (const { object } of CELLS.filter(({ isZstd }) => isZstd)) {
    await recompressed({ metadata, nars, tempPath: storage }, object);
  }
  await exportAll(storage, folder);
  const told = [...firstPaths].flatMap(([cell, path]) =>
    cell.endings.map((ending) => (
      { cell, ...compressionOf(ending), path: path.replace(/\.nar.*$/, suffixOf(ending)) }
    ))
  );
  return { told, keys: [...keys, keyOf(storage).publicKey.text] };
}

function keyOf(storage: string) {
  return parseSecretKey(Deno.readTextFileSync(`${storage}/secret-key`));
}

async function exportAll(storage: string, folder: string): Promise<void> {
  const paths = CELLS.map(({ object }) => object.storePath);
  const words = ["export", `file://${folder}`, ...paths, "--cache-storage-local", storage];
  const { status, err } = await runLarder(words);
  assert.equal(status, 0, err);
}

async function importAll(folder: string, words: readonly string[], keys: readonly string[]) {
  const trust = keys.flatMap((key) => ["--cache-upstream-public-key", key]);
  const done = await runLarder(["import", "cache", `file://${folder}`, ...words, ...trust]);
  assert.equal(done.status, 0, done.err);
  return done;
}

function compressionOf(ending: string): { readonly compression: Compression } {
  const [compression] = Object.entries(COMPRESSIONS)
    .find(([, { extension }]) => `.nar${extension}` === suffixOf(ending)) ?? [];
  assert.ok(compression, ending);
  return { compression: compression as Compression };
}

function suffixOf(ending: string): string {
  return ending === "nar" ? ".nar" : `.nar.${ending}`;
}

/** The whole NAR in that compression, with its length, its ranges and a HEAD that agrees. */
async function assertAnswered({ url }: LarderProcess, { cell, compression, path }: Told) {
  const what = `${cell.name}, asked for ${path}`;
  const whole = await fetch(url + path);
  assert.equal(whole.status, 200, what);
  const bytes = await whole.bytes();
  assertSameBytes(await decompress(bytes, compression), cell.object.nar);
  assert.equal(whole.headers.get("content-length"), `${bytes.length}`, what);
  assert.equal(whole.headers.get("x-cache"), "HIT", what);
  const head = await fetch(url + path, { method: "HEAD" });
  await head.body?.cancel();
  for (const field of ["content-length", "etag", "accept-ranges"]) {
    assert.equal(head.headers.get(field), whole.headers.get(field), `${what}: ${field}`);
  }
  for (const from of [1, 70_000, bytes.length - 1]) {
    const part = await fetch(url + path, { headers: { range: `bytes=${from}-` } });
    assert.equal(part.status, 206, what);
    assertSameBytes(await part.bytes(), bytes.subarray(from));
  }
}

testUnless(
  programsMissing("xz", "bzip2"),
  "former names: an import answers each name that the exporting larder has told",
  async (t) => {
    using first = tempFolder();
    using second = tempFolder();
    using stick = tempFolder();
    const { told, keys } = await exported(first.path, stick.path);
    await t.step("the folder is a plain cache", () => assertPlain(stick.path));

    await importAll(stick.path, ["--cache-storage-local", second.path], keys);
    await served(second.path, async (larder) => {
      for (const one of told) {
        const name = `${one.cell.name}, asked for ${one.compression}`;
        await t.step(name, () => assertAnswered(larder, one));
      }
    });

    await t.step("the names go on with a second export", async () => {
      using third = tempFolder();
      using otherStick = tempFolder();
      await exportAll(second.path, otherStick.path);
      const further = [...keys, keyOf(second.path).publicKey.text];
      await importAll(otherStick.path, ["--cache-storage-local", third.path], further);
      await served(third.path, async (larder) => {
        for (const one of told) await assertAnswered(larder, one);
      });
    });

    await t.step({
      name: `into a bucket${S3_UNAVAILABLE && ` (skipped: ${S3_UNAVAILABLE})`}`,
      ignore: server === undefined,
      async fn() {
        using third = tempFolder();
        assert.ok(server);
        const place = s3Flags(server.bucket());
        const words = Object.entries(place).map(([name, value]) => `--${name}=${value}`);
        await importAll(stick.path, [...words, "--cache-storage-local", third.path], keys);
        await served(third.path, async (larder) => {
          for (const one of told) await assertAnswered(larder, one);
        }, place);
      },
    });

    await t.step(
      "also where an upstream, gone since, has told that name without its file",
      async () => {
        using third = tempFolder();
        const ofCell = told.filter(({ cell: { name } }) => name === "upstream xz, kept: zstd");
        const [{ cell } = {}] = ofCell;
        assert.ok(cell);
        {
          await using upstream = await fakeUpstream({ objects: [cell.object], compression: "xz" });
          await using larder = await startLarder({
            "cache-storage-local": third.path,
            "cache-upstream-url": upstream.url,
            "cache-upstream-public-key": upstream.publicKey,
            "cache-prefetch": "false",
          });
          const { narPath } = await servedNarinfo(larder.port, cell.object.storePathHash);
          assert.ok(ofCell.some(({ path }) => path === narPath));
          larder.kill("SIGTERM");
          await larder.ended;
        }
        await importAll(stick.path, ["--cache-storage-local", third.path], keys);
        await served(third.path, async (larder) => {
          for (const one of ofCell) await assertAnswered(larder, one);
        });
      },
    );

    await t.step("an import says which key it needs for them, and takes them then", async () => {
      using third = tempFolder();
      const into = ["--cache-storage-local", third.path];
      const withoutKey = keys.filter((key) => key !== keyOf(first.path).publicKey.text);
      const { err } = await importAll(stick.path, [
        ...into,
        "--cache-require-upstream-signature=false",
      ], withoutKey);
      assert.match(err, /no trusted key has signed the former names of 6 paths: give the key/);
      await importAll(stick.path, into, keys);
      await served(third.path, async (larder) => {
        for (const one of told) await assertAnswered(larder, one);
      });
    });

    await t.step("a name never leads to another NAR, whatever a folder says", async () => {
      using third = tempFolder();
      const into = ["--cache-storage-local", third.path];
      const lost = told.filter(({ cell: { from, isZstd } }) => from === "upload" && isZstd);
      const [{ cell, path } = {}] = lost;
      const [urlLiar, ...liars] = CELLS.map(({ object }) => object);
      assert.ok(cell && path && urlLiar);
      const stem = stemOf(path.slice("/nar/".length));
      await lieInUrl(stick.path, urlLiar, stem);
      const names = (object: StoreObject) => `${stick.path}/${object.storePathHash}.names`;
      const others = Deno.readTextFileSync(names(cell.object));
      const keyName = keyOf(first.path).name;
      const liarPaths = Object.values(LIES).map((textOf, at) => {
        const object = liars[at];
        assert.ok(object);
        Deno.writeTextFileSync(names(object), textOf(stem, { object, keyName, others }));
        return object.storePath;
      });
      const trust = keys.flatMap((key) => ["--cache-upstream-public-key", key]);
      const source = `file://${stick.path}`;
      const alone = await runLarder([
        ...["import", "cache", source, urlLiar.storePath, ...liarPaths, ...into, ...trust],
      ]);
      assert.equal(alone.status, 0, alone.err);
      const ofStem = lost.filter((one) => one.cell === cell);
      await served(third.path, async (larder) => {
        for (const { path } of ofStem) {
          const answer = await fetch(larder.url + path);
          await answer.body?.cancel();
          assert.equal(answer.status, 404, path);
        }
        const { narPath, compression } = await servedNarinfo(larder.port, urlLiar.storePathHash);
        const file = await (await fetch(larder.url + narPath)).bytes();
        assertSameBytes(await decompress(file, compression), urlLiar.nar);
      });
      await importAll(stick.path, into, keys);
      await served(third.path, async (larder) => {
        for (const one of ofStem) await assertAnswered(larder, one);
      });
    });
  },
);

/** The NAR gets the URL of another one, and claims nothing that contradicts it. */
async function lieInUrl(folder: string, object: StoreObject, stem: NarStem): Promise<void> {
  const file = `${folder}/${object.storePathHash}.narinfo`;
  const text = await Deno.readTextFile(file);
  await Deno.rename(`${folder}/${parseNarinfo(text).url}`, `${folder}/nar/${stem}.nar.xz`);
  const lie = text.replace(/^URL: .*$/m, `URL: nar/${stem}.nar.xz`).replace(/^FileHash: .*\n/m, "");
  await Deno.writeTextFile(file, lie);
}

/** Each narinfo leads to its NAR without larder. */
async function assertPlain(folder: string): Promise<void> {
  for (const { object } of CELLS) {
    const text = Deno.readTextFileSync(`${folder}/${object.storePathHash}.narinfo`);
    const { url, compression, narHash } = parseNarinfo(text);
    assert.equal(narHash, object.narHash);
    const file = Deno.readFileSync(`${folder}/${url}`);
    assertSameBytes(await decompress(file, compression), object.nar);
  }
}

/** A larder on that storage, without an upstream. */
async function served(
  storage: string,
  check: (larder: LarderProcess) => Promise<void>,
  flags: LarderFlags = {},
): Promise<void> {
  await using larder = await startLarder({
    ...NO_UPSTREAM,
    ...flags,
    "cache-storage-local": storage,
  });
  await check(larder);
  larder.kill("SIGTERM");
  await larder.ended;
}
