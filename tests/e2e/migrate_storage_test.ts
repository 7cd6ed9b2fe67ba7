import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { S3Place } from "../../src/storage/s3/s3_access.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderFlags, larderProcess, startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { type Ran, runLarder } from "../support/run_larder.ts";
import { S3FaultProxy } from "../support/s3_fault_proxy.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { filesBelow, storedFileOf } from "../support/storage_look.ts";
import { chain, makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

/** In several parts. */
const large = makeStoreObject({ name: "large", size: 12_000_000 });
const objects = [...chain(3), large];

testUnless(
  S3_UNAVAILABLE,
  "migrate storage: a used folder moves to a bucket and back, and all is served from there",
  async () => {
    using storage = tempFolder();
    using back = tempFolder();
    const place = newBucket();
    await using upstream = await fakeUpstream({ objects, compression: "none" });
    const local = { ...flagsOf(upstream), "cache-storage-local": storage.path };
    const toBucket = [storage.path, `s3://${place.bucket}`, ...wordsOf(s3Flags(place))];
    {
      await using larder = await startLarder(local);
      await pull(larder.port, objects.slice(0, 2), "MISS");
      const first = await migrate(toBucket);
      assert.match(first.out, /^2 NAR files copied .*both storages are the same.\nA larder uses/);
      assert.deepEqual([first.status, problemsIn(first)], [0, ""]);
      await pull(larder.port, objects.slice(2), "MISS");
      await pull(larder.port, objects, "HIT");
      larder.kill("SIGTERM");
      await larder.ended;
    }
    const second = await migrate(toBucket);
    assert.match(
      second.out,
      /^2 NAR files copied .*4 compared: both .* same.\nStart larder on the/,
    );
    assert.deepEqual(sealedElsewhere(storage.path), [], "the seals are the bucket's");
    await upstream.stop();
    {
      await using larder = await startLarder({ ...local, ...s3Flags(place) });
      await pull(larder.port, objects, "HIT");
      larder.kill("SIGTERM");
      await larder.ended;
    }
    const database = ["--cache-database-url", `sqlite:${storage.path}/db.sqlite`];
    const fromBucket = [`s3://${place.bucket}`, back.path, ...wordsOf(s3Flags(place))];
    const third = await migrate([...fromBucket, ...database]);
    assert.match(third.out, /^4 NAR files copied/);
    await using larder = await startLarder({
      ...local,
      "cache-storage-local": back.path,
      "cache-database-url": `sqlite:${storage.path}/db.sqlite`,
    });
    await pull(larder.port, objects, "HIT");
  },
);

testUnless(
  S3_UNAVAILABLE,
  "migrate storage: killed within a file, it goes on where it ended and leaves no parts",
  async () => {
    if (server === undefined) return;
    using storage = tempFolder();
    await using upstream = await fakeUpstream({ objects, compression: "none" });
    await stoppedLarder(storage.path, upstream, objects);
    await using proxy = new S3FaultProxy(server.port);
    const place = newBucket();
    const held = Promise.withResolvers<void>();
    proxy.fault = ({ path }) =>
      path.includes("partNumber=2") ? { holdUntil: held.promise } : undefined;
    const copied = () => filesBelow(`${server.folderOf(place)}/nar`).size;
    const words = (port: number) => [
      ...["migrate", "storage", storage.path, `s3://${place.bucket}`],
      ...wordsOf(s3Flags({ ...place, endpoint: `http://127.0.0.1:${port}` })),
    ];

    const first = larderProcess(words(proxy.port));
    await eventually("all but the large one are copied, and that is under way", () => {
      return copied() === 3 && server.unfinishedIn(place).length === 1;
    });
    first.kill("SIGKILL");
    await first.output();
    const second = await runLarder(words(server.port));
    held.resolve();

    assert.match(second.out, /^1 NAR file copied .*, 4 compared: both storages are the same/);
    assert.equal(copied(), 4);
    assert.deepEqual(server.unfinishedIn(place), []);
    assert.equal(filesBelow(`${storage.path}/tmp`).size, 0, "no file that was being checked");
  },
);

testUnless(
  S3_UNAVAILABLE,
  "migrate storage: a flipped bit in the old place is named, and not copied",
  async () => {
    if (server === undefined) return;
    using storage = tempFolder();
    await using upstream = await fakeUpstream({ objects, compression: "none" });
    const { narinfos: [narinfo] } = await stoppedLarder(storage.path, upstream, objects);
    const path = storedFileOf(storage.path, narinfo?.narPath.replace("/nar/", "") ?? "");
    flipBit(path);
    const place = newBucket();
    const words = [storage.path, `s3://${place.bucket}`, ...wordsOf(s3Flags(place))];
    const ran = await migrate(words);
    const { status, out } = ran;
    assert.equal(status, 1);
    const name = path.slice(path.lastIndexOf("/") + 1);
    assert.equal(problemsIn(ran), `larder: not copied:\n  ${name}: its bytes have changed\n`);
    assert.match(out, /^3 NAR files copied .*4 compared: the others are the same/);
    const there = [...filesBelow(`${server.folderOf(place)}/nar`).keys()];
    assert.deepEqual([there.length, there.some((one) => one.endsWith(name))], [3, false]);
  },
);

Deno.test("migrate storage: words that name no two places are refused", async () => {
  for (const words of [[], ["/a"], ["/a", "/a/"], ["/a", "gs://b"], ["/a", "/b", "/c"]]) {
    const { status, err } = await migrate(words);
    assert.equal(status, 2, err);
  }
});

function migrate(words: readonly string[]) {
  return runLarder(["migrate", "storage", ...words]);
}

/** Its standard error without the lines of its progress, which only a slow one has. */
function problemsIn({ err }: Ran): string {
  const at = err.indexOf("larder:");
  return at < 0 ? "" : err.slice(at);
}

async function pull(
  port: number,
  wanted: readonly StoreObject[],
  expected: "HIT" | "MISS",
): Promise<void> {
  for (const { storePathHash } of wanted) {
    const narinfo = await servedNarinfo(port, storePathHash);
    if (expected === "MISS") await servedNar(port, narinfo);
    await eventually(`${narinfo.narPath} is a HIT`, async () => {
      const { status, headers } = await servedNar(port, narinfo);
      return status === 200 && headers.get("x-cache") === "HIT";
    });
  }
}

function flagsOf(upstream: FakeUpstream): LarderFlags {
  return {
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  };
}

function wordsOf(flags: LarderFlags): readonly string[] {
  return Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
}

/** The kept NARs whose seals are not those of S3 objects, which begin with the publish id. */
function sealedElsewhere(storage: string): readonly unknown[] {
  using database = new DatabaseSync(`${storage}/db.sqlite`, { readOnly: true });
  const sql = "SELECT name FROM nar WHERE kept_seal NOT LIKE kept_id || '-%' ORDER BY name";
  return database.prepare(sql).all();
}

function flipBit(path: string): void {
  const bytes = Deno.readFileSync(path);
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  Deno.writeFileSync(path, bytes);
}

function newBucket(): S3Place {
  if (server === undefined) throw new Error("Cannot make a bucket: there is no server");
  return server.bucket();
}
