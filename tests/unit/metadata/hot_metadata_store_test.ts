import assert from "node:assert/strict";
import { HotMetadataStore } from "../../../src/metadata/hot_metadata_store.ts";
import {
  type NarinfoRow,
  NarNameTaken,
  NEVER_USED_AT_MS,
} from "../../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { narName } from "../../../src/nix/nar_name.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { fileOf, hash, keep, narOf, put as memoryPut } from "../../support/metadata_rows.ts";
import { nextAnswer } from "../../support/next_answer.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const { storePathHash, narHash, narSize } = makeStoreObject({ name: "thing" });
const name = narName(narHash, "none");
const row: NarinfoRow = { storePathHash, body: "text\n", narName: name, trusted: true };
const put = {
  kind: "put-narinfo",
  row,
  references: [],
  nar: { name, compression: "none", narHash, narSize },
  sources: [],
  atMs: 1,
} as const;

Deno.test("HotMetadataStore: a change by another process is seen after its notice", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  const hot = new HotMetadataStore(metadata, createLogger("error", { write() {} }));
  await hot.apply([put]);
  assert.ok(await hot.findNarinfo(storePathHash));
  const { promise: told, resolve } = Promise.withResolvers<void>();
  await using _feed = metadata.subscribe((changed) => {
    hot.forgetChanged(changed);
    resolve();
  });

  await using other = new SqliteMetadataStore(await openDatabase(path));
  await other.apply([{ kind: "remove-narinfo", storePathHash }]);

  await told;
  assert.equal(await hot.findNarinfo(storePathHash), undefined);
});

Deno.test("HotMetadataStore: it tells what has arrived once it is written, by whomever", async () => {
  await using metadata = new MemoryMetadataStore();
  const hot = new HotMetadataStore(metadata, createLogger("error", { write() {} }));
  const arrived: unknown[] = [];
  hot.whenArrived((names) => void arrived.push(names));
  const narinfo = memoryPut(hash("a"), []);
  const { nar: { name } } = narinfo;
  await hot.apply([narinfo]);
  await hot.apply(keep(fileOf(name)));
  await assert.rejects(hot.apply(keep(fileOf(name)).slice(1)), "without an intent");
  assert.deepEqual(arrived, [
    { storePaths: [hash("a")], nars: [] },
    { storePaths: [], nars: [name] },
  ]);
  const others = { storePaths: [storePathHash], nars: [] };
  for (const changed of [others, "all"] as const) {
    hot.forgetChanged(changed);
    assert.deepEqual(arrived.at(-1), changed);
  }
});

Deno.test("HotMetadataStore: each change of rows and pins raises the generation", async () => {
  const hot = new HotMetadataStore(
    new MemoryMetadataStore(),
    createLogger("error", { write() {} }),
  );
  const generations = [hot.generation];
  await hot.apply([put]);
  generations.push(hot.generation);
  await hot.apply([{ kind: "put-pin", pin: { storePathHash, pinnedAtMs: 1 } }]);
  generations.push(hot.generation);
  await hot.notePin(storePathHash, { keepComplete: true });
  generations.push(hot.generation);
  assert.equal(new Set(generations).size, generations.length);
});

Deno.test("HotMetadataStore: of keys that changed it reads those anew, and no others", async () => {
  const stored = new MemoryMetadataStore();
  const hot = new HotMetadataStore(stored, createLogger("error", { write() {} }));
  const [changed, same] = [hash("changed"), hash("same")];
  await hot.apply([memoryPut(changed, []), memoryPut(same, [])]);
  for (const path of [changed, same]) {
    assert.ok(await hot.findNarinfo(path));
    assert.ok(await hot.findNar(narOf(path).name));
    await stored.apply([
      { kind: "remove-narinfo", storePathHash: path },
      ...keep(fileOf(narOf(path).name)),
    ]);
  }
  hot.forgetChanged({ storePaths: [changed], nars: [narOf(changed).name] });
  assert.equal(await hot.findNarinfo(changed), undefined);
  assert.ok((await hot.findNar(narOf(changed).name))?.kept);
  assert.ok(await hot.findNarinfo(same));
  assert.equal((await hot.findNar(narOf(same).name))?.kept, undefined);
});

Deno.test("HotMetadataStore: rows that a client requested are in memory once written", async () => {
  const stored = new MemoryMetadataStore();
  const hot = hotOf(stored);
  const [asked, ahead] = [hash("asked"), hash("ahead")];
  const file = fileOf(narOf(asked).name);
  await hot.apply([memoryPut(asked, [])]);
  await hot.apply([memoryPut(ahead, [], NEVER_USED_AT_MS)]);
  assert.ok(await hot.findNar(narOf(asked).name));
  for (const change of keep(file)) await hot.apply([change]);

  const row = await stored.findNarinfo(asked);
  const record = await stored.findNar(narOf(asked).name);
  await stored[Symbol.asyncDispose]();
  assert.deepEqual(await hot.findNarinfo(asked), row);
  assert.deepEqual(await hot.findNar(narOf(asked).name), record);
  assert.deepEqual(record?.kept, file);
  await assert.rejects(hot.findNarinfo(ahead), "no client requested it");
});

Deno.test("HotMetadataStore: a read that a write overtakes finds what was written", async () => {
  const stored = new MemoryMetadataStore();
  const hot = hotOf(stored);
  const path = hash("a");
  const { name } = narOf(path);
  const narinfo = nextAnswer(stored, "findNarinfo");
  const beforeNarinfo = hot.findNarinfo(path);
  await narinfo.read;
  await hot.apply([memoryPut(path, [])]);
  narinfo.release();
  assert.deepEqual(await beforeNarinfo, await stored.findNarinfo(path));

  const nar = nextAnswer(stored, "findNar");
  const beforeKept = hot.findNar(name);
  await nar.read;
  assert.ok(await hot.findNar(name));
  const file = fileOf(name);
  for (const change of keep(file)) await hot.apply([change]);
  nar.release();
  assert.deepEqual((await beforeKept)?.kept, file);
});

Deno.test("HotMetadataStore: a write that another one overtakes leaves no row", async () => {
  const path = hash("a");
  type Overtake = (hot: HotMetadataStore) => unknown;
  const overtakings: Readonly<Record<string, Overtake>> = {
    "another process": (hot) => hot.forgetChanged({ storePaths: [path], nars: [] }),
    "a lost feed": (hot) => hot.forgetChanged("all"),
    "this process": (hot) => hot.apply([{ kind: "remove-narinfo", storePathHash: path }]),
  };
  for (const [who, overtake] of Object.entries(overtakings)) {
    const stored = new MemoryMetadataStore();
    const apply = stored.apply.bind(stored);
    const answered = Promise.withResolvers<void>();
    stored.apply = async (changes) => {
      await apply(changes);
      if (changes[0]?.kind === "put-narinfo") await answered.promise;
    };
    const hot = hotOf(stored);
    const writing = hot.apply([memoryPut(path, [])]);
    await overtake(hot);
    await apply([{ kind: "remove-narinfo", storePathHash: path }]);
    answered.resolve();
    await writing;
    assert.equal(await hot.findNarinfo(path), undefined, who);
  }
});

Deno.test("HotMetadataStore: a refused write leaves no row behind", async () => {
  const stored = new MemoryMetadataStore();
  const hot = hotOf(stored);
  const path = hash("a");
  const nar = { ...narOf(path), narSize: 1 };
  await hot.apply([memoryPut(hash("b"), []), { ...memoryPut(hash("c"), []), nar }]);
  await assert.rejects(hot.apply([memoryPut(path, [])]), NarNameTaken);
  assert.equal(await hot.findNarinfo(path), undefined);
});

function hotOf(stored: MemoryMetadataStore): HotMetadataStore {
  return new HotMetadataStore(stored, createLogger("error", { write() {} }));
}
