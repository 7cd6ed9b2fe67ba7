import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { newStorageId } from "../../../src/base/storage_id.ts";
import { StorageClaim, type StorageClaimDeps } from "../../../src/cache/reconcile/storage_claim.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { StoredName } from "../../../src/nix/stored_name.ts";
import { LocalMarks } from "../../../src/storage/local/local_marks.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const [known, unknown] = [fileOf(narOf(hash("a")).name), fileOf(narOf(hash("b")).name)];

Deno.test("storage claim: an empty store belongs to its first database alone", async () => {
  await using store = new Scene();
  await using one = await openStore();
  await using other = await openStore();
  await store.claim(one).confirm();
  await store.claim(one).confirm();
  await assert.rejects(store.claim(other).confirm(), /belong to another database \(sqlite:x\)/);
});

Deno.test("storage claim: a store without a mark is of the database that knows it", async () => {
  await using store = new Scene([unknown.at, known.at]);
  await using stranger = await openStore();
  await assert.rejects(store.claim(stranger).confirm(), /this one knows none of them/);
  await using owner = await openStore();
  await owner.apply([put(hash("a"), []), ...keep(known)]);
  await store.claim(owner).confirm();
  assert.equal((await store.marks.read())?.id, await owner.storageId());
});

Deno.test("storage claim: a new database beside the files replaces a lost one", async () => {
  await using store = new Scene([known.at]);
  await using lost = await openStore();
  await using found = await openStore();
  await store.claim(lost, { isBeside: true }).confirm();
  await store.claim(found, { isBeside: true }).confirm();
  assert.equal((await store.marks.read())?.id, await found.storageId());
  await store.marks.replace({ id: newStorageId(), database: "postgres://db/larder" });
  await assert.rejects(store.claim(found, { isBeside: true }).confirm(), /postgres:\/\/db\/larder/);
});

Deno.test("storage claim: a backup from before ids claims the files that it knows", async () => {
  await using store = new Scene([known.at]);
  await using newer = await openStore();
  await store.claim(newer).adopt();
  await using backup = await openStore();
  await assert.rejects(store.claim(backup).confirm(), /belong to another database/);
  await backup.apply([put(hash("a"), []), ...keep(known)]);
  await store.claim(backup).confirm();
  assert.equal(await backup.storageId(), await newer.storageId());
});

Deno.test("storage claim: an adopted store belongs to its new database", async () => {
  await using store = new Scene([known.at]);
  await using one = await openStore();
  await using other = await openStore();
  await store.claim(one, { isBeside: true }).confirm();
  await store.claim(other).adopt();
  await store.claim(other).confirm();
  await assert.rejects(store.claim(one).confirm(), Failure);
});

Deno.test("storage claim: a store that did not answer is claimed at the next call", async () => {
  await using store = new Scene();
  await using one = await openStore();
  const { read } = store.marks;
  store.marks.read = () => Promise.reject(new Failure("unavailable", "away"));
  const claim = store.claim(one);
  await assert.rejects(claim.confirm(), /away/);
  store.marks.read = read;
  await claim.confirm();
  assert.equal((await store.marks.read())?.id, await one.storageId());
});

Deno.test("storage claim: an empty store is refused while a member lives elsewhere", async () => {
  await using store = new Scene();
  await using elsewhere = new Scene();
  await using one = await openStore();
  await elsewhere.claim(one).confirm();
  const claim = store.claim(one, { otherMember: async () => "host.7.uuid" });
  await assert.rejects(claim.confirm(), /member host\.7\.uuid uses this database/);
  assert.equal(await store.marks.read(), undefined);
  await store.claim(one, { otherMember: async () => undefined }).confirm();
});

Deno.test("storage claim: members that start at once on one empty store all claim it", async () => {
  await using store = new Scene();
  await using one = await openStore();
  const id = await one.claimStorageId(newStorageId());
  const otherMember = async () => {
    await store.marks.claim({ id, database: "sqlite:x" });
    return "host.7.uuid";
  };
  await store.claim(one, { otherMember }).confirm();
});

Deno.test("storage claim: a store of known files is right beside other members", async () => {
  await using store = new Scene([known.at]);
  await using one = await openStore();
  await one.apply([put(hash("a"), []), ...keep(known)]);
  const id = await one.claimStorageId(newStorageId());
  await store.claim(one, { otherMember: async () => "host.7.uuid" }).confirm();
  assert.equal((await store.marks.read())?.id, id);
});

/** A folder with a mark, and the names of objects. */
class Scene {
  readonly #folder = tempFolder();
  readonly #names: readonly StoredName[];
  readonly marks = new LocalMarks(this.#folder.path);

  constructor(names: readonly StoredName[] = []) {
    this.#names = names;
  }

  claim(
    metadata: SqliteMetadataStore,
    more: Partial<Pick<StorageClaimDeps, "isBeside" | "otherMember">> = {},
  ): StorageClaim {
    const names = this.#names;
    return new StorageClaim({
      metadata,
      nars: {
        async *list() {
          for (const at of names) yield { at };
        },
      },
      marks: this.marks,
      names: { store: "the store", database: "sqlite:x" },
      isBeside: false,
      ...more,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#folder[Symbol.dispose]();
  }
}

async function openStore(): Promise<SqliteMetadataStore> {
  return new SqliteMetadataStore(await openDatabase(":memory:"));
}
