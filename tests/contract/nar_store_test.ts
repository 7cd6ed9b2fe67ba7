import assert from "node:assert/strict";
import { tracedNars } from "../../src/app/stores.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { HotNarStore } from "../../src/storage/hot_nar_store.ts";
import { newStoredName } from "../../src/nix/stored_name.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { LocalMarks } from "../../src/storage/local/local_marks.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { WatchedNarStore } from "../../src/storage/watched_nar_store.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import { eventually } from "../support/eventually.ts";
import { MemoryNarStore } from "../support/memory_nar_store.ts";
import { RecordedNarStore } from "../support/recorded_nar_store.ts";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { STAYS } from "../support/staying_client.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { withinRequest } from "../support/within_request.ts";
import { checkContract, type Harness } from "./contract.ts";
import { narStoreClauses, put } from "./nar_store_contract.ts";
import { storageMarksClauses } from "./storage_marks_contract.ts";

const harnesses: readonly Harness<NarStore>[] = [
  { name: "MemoryNarStore", open: () => Promise.resolve(new MemoryNarStore()) },
  { name: "LocalNarStore", open: () => overFiles((files) => files) },
  {
    name: "HotNarStore",
    open: () => {
      const limits = { fileBytesMax: 1_000, totalBytesMax: 10_000 };
      return overFiles((files) => new HotNarStore(files, limits));
    },
  },
  {
    name: "WatchedNarStore",
    open: () => overFiles((files) => new WatchedNarStore(files, { log: SILENT, nowMs: () => 0 })),
  },
  { name: "traced NarStore", open: () => overFiles(inTrace) },
  { name: "RecordedNarStore", open: () => overFiles((files) => new RecordedNarStore(files)) },
];

for (const harness of harnesses) checkContract(harness, narStoreClauses);

/** A store over files, so that one that stays open is noticed. */
async function overFiles(
  wrap: (files: LocalNarStore) => NarStore,
): Promise<NarStore & AsyncDisposable> {
  const folder = tempFolder();
  const store = wrap(new LocalNarStore(`${folder.path}/nar`));
  return Object.assign(store, { [Symbol.asyncDispose]: async () => folder[Symbol.dispose]() });
}

/** A store with spans for reads, too. */
function inTrace(files: NarStore): NarStore {
  const { tracer } = new RecordedSpans();
  return withinRequest(tracedNars(files, "s3", tracer), tracer);
}

checkContract({
  name: "LocalMarks",
  open: async () => {
    const folder = tempFolder();
    const path = `${folder.path}/nar`;
    return {
      marks: new LocalMarks(path),
      nars: new LocalNarStore(path),
      [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
    };
  },
}, storageMarksClauses);

const at = newStoredName(narName(sha256FromDigest(new Uint8Array(32).fill(7)), "none"));

Deno.test("LocalNarStore: a failed lookup is a throw, never undefined", async () => {
  using folder = tempFolder();
  // A file where a folder should be: opening below it fails, and says nothing of absence.
  await Deno.writeTextFile(`${folder.path}/${at.slice(0, 2)}`, "");
  await assert.rejects(new LocalNarStore(folder.path).open(at, STAYS), /Cannot open NAR file/);
});

Deno.test("LocalNarStore: a file over 4 GiB keeps its size and its last bytes", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/big`;
  const size = 5 * 2 ** 30;
  await Deno.writeTextFile(path, "");
  await Deno.truncate(path, size);
  using file = await Deno.open(path, { write: true });
  await file.seek(size - 3, Deno.SeekMode.Start);
  await file.write(new TextEncoder().encode("end"));
  const store = new LocalNarStore(folder.path);
  await store.put(at, path);

  const nar = await store.open(at, STAYS);
  assert.equal(nar?.fileSize, size);
  assert.equal(await new Response(nar?.read(size - 3, size)).text(), "end");
});

Deno.test("LocalNarStore: a folder that another process removed is made again", async () => {
  using folder = tempFolder();
  const store = new LocalNarStore(folder.path);
  await put(store, at, "abcdef");
  Deno.removeSync(`${folder.path}/${at.slice(0, 2)}`, { recursive: true });

  await put(store, at, "ghi");

  await using nar = await store.open(at, STAYS);
  assert.equal(await new Response(nar?.read(0, 3)).text(), "ghi");
});

Deno.test("LocalNarStore: folders of others beside its own are no files of it", async () => {
  using folder = tempFolder();
  const store = new LocalNarStore(folder.path);
  await put(store, at, "abcdef");
  const shard = at.slice(0, 2);
  const others = `${folder.path}/${shard}-old`;
  Deno.mkdirSync(others);
  Deno.writeTextFileSync(`${others}/${at}`, "old");

  for (const prefix of ["", at.slice(0, 1), shard]) {
    assert.deepEqual(await Array.fromAsync(store.list(prefix)), [{ at }], prefix);
  }
});

Deno.test("LocalNarStore: a file cut while it is read fails", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/file`;
  await Deno.writeTextFile(path, "abcdef");
  const store = new LocalNarStore(folder.path);
  await store.put(at, path);
  const nar = await store.open(at, STAYS);
  await Deno.truncate(`${folder.path}/${at.slice(0, 2)}/${at}`, 3);
  await assert.rejects(new Response(nar?.read(0, 6)).text(), /became shorter/);
  const again = await store.open(at, STAYS);
  await Deno.truncate(`${folder.path}/${at.slice(0, 2)}/${at}`, 1);
  await assert.rejects(new Response(again?.read(0, 2)).text(), /became shorter/);
});

Deno.test("LocalNarStore: a file whose bytes were changed has another seal", async () => {
  using folder = tempFolder();
  const store = new LocalNarStore(folder.path);
  const published = await put(store, at, "abcdef");
  await using before = await store.open(at, STAYS);
  const path = `${folder.path}/${at.slice(0, 2)}/${at}`;
  Deno.writeTextFileSync(path, "abcXef");
  // A clock tick may not have passed since it was written.
  Deno.utimeSync(path, 1, 1);
  assert.equal(before?.seal, published);
  await using after = await store.open(at, STAYS);
  assert.ok(after && after.seal !== published);
});

Deno.test("LocalNarStore: bytes() of a file that was changed after open() fails", async () => {
  using folder = tempFolder();
  const store = new LocalNarStore(folder.path);
  await put(store, at, "abcdef");
  const nar = await store.open(at, STAYS);
  const path = `${folder.path}/${at.slice(0, 2)}/${at}`;
  Deno.writeTextFileSync(path, "abcXef");
  Deno.utimeSync(path, 1, 1);
  await assert.rejects(async () => await nar?.bytes(), /it was changed/);
});

Deno.test("LocalNarStore: a file that is removed while it is open is read whole", async () => {
  using folder = tempFolder();
  const store = new LocalNarStore(folder.path);
  await put(store, at, "abcdef");
  const [whole, part] = [await store.open(at, STAYS), await store.open(at, STAYS)];
  // The time of a change has whole seconds, and the removal is to be another.
  const before = changedAtMs(`${folder.path}/${at.slice(0, 2)}/${at}`);
  await eventually("the file system's clock goes on", () => {
    Deno.utimeSync(folder.path, 1, 1);
    return changedAtMs(folder.path) > before;
  });
  await store.remove(at);
  assert.equal(new TextDecoder().decode(await whole?.bytes()), "abcdef");
  assert.equal(await new Response(part?.read(0, 6)).text(), "abcdef");
});

Deno.test("HotNarStore: a memory hit answers without a promise, and without a signal", async () => {
  const store = new HotNarStore(new MemoryNarStore(), { fileBytesMax: 10, totalBytesMax: 100 });
  await put(store, at, "abcdef");
  await (await store.open(at, STAYS))?.bytes();
  const client = {
    get signal(): AbortSignal {
      throw new Error("nobody needs it");
    },
  };
  const bytes = (await store.open(at, client))?.bytes(client);
  assert.ok(bytes instanceof Uint8Array);
  assert.equal(new TextDecoder().decode(bytes), "abcdef");
});

Deno.test("HotNarStore: a file that was found missing is not in memory either", async () => {
  using folder = tempFolder();
  const local = new LocalNarStore(folder.path);
  const store = new HotNarStore(local, { fileBytesMax: 1_000, totalBytesMax: 10_000 });
  await put(store, at, "abcdef");
  await (await store.open(at, STAYS))?.bytes();
  const reader = await store.open(at, { ...STAYS, fresh: true });
  await local.remove(at);
  assert.equal((await store.open(at, STAYS))?.isInMemory, true);

  assert.equal(await store.open(at, { ...STAYS, fresh: true }), undefined);
  assert.equal((await reader?.bytes())?.length, 6, "it was open before");
  assert.equal(await store.open(at, STAYS), undefined);
});

Deno.test("HotNarStore: bytes of another file than was opened do not stay", async () => {
  using folder = tempFolder();
  const local = new LocalNarStore(folder.path);
  const store = new HotNarStore(local, { fileBytesMax: 1_000, totalBytesMax: 10_000 });
  const published = await put(store, at, "abcdef");
  const nar = await store.open(at, STAYS);
  const path = `${folder.path}/${at.slice(0, 2)}/${at}`;
  Deno.writeTextFileSync(path, "abcXef");
  Deno.utimeSync(path, 1, 1);
  await assert.rejects(async () => await nar?.bytes(), /it was changed/);
  await using again = await store.open(at, STAYS);
  assert.ok(again && again.seal !== published);
});

function changedAtMs(path: string): number {
  return Deno.statSync(path).ctime?.getTime() ?? 0;
}
