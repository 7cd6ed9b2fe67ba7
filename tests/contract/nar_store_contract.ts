import assert from "node:assert/strict";
import { narName } from "../../src/nix/nar_name.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { newStoredName, type Seal, type StoredName } from "../../src/nix/stored_name.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { STAYS } from "../support/staying_client.ts";
import { tempFolder } from "../support/temp_folder.ts";
import type { Clauses } from "./contract.ts";

const sha256 = sha256FromDigest(new Uint8Array(32).fill(7));
const name = narName(sha256, "xz");
/** Two objects of one NAR, and the object of a file from before objects had ids. */
const [at, other] = [newStoredName(name), newStoredName(name)];
const old = name as string as StoredName;

export const narStoreClauses: Clauses<NarStore> = {
  "open() of an unknown name is undefined, not an error": async (store) => {
    assert.equal(await store.open(at, STAYS), undefined);
  },

  "put() then open() gives back size and bytes": async (store) => {
    await put(store, at, "abcdef");
    const nar = await opened(store, at);
    assert.equal(nar.fileSize, 6);
    assert.equal(new TextDecoder().decode(await nar.bytes()), "abcdef");
  },

  "put() takes the file away from where it was": async (store) => {
    using folder = tempFolder();
    const path = `${folder.path}/file`;
    await Deno.writeTextFile(path, "abcdef");
    await store.put(at, path);
    await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
  },

  "read(start, end) gives that part, and nothing for an empty one": async (store) => {
    await put(store, at, "abcdef");
    assert.equal(await textOf(store, at, 4, 6), "ef");
    assert.equal(await textOf(store, at, 0, 3), "abc");
    assert.equal(await textOf(store, at, 6, 6), "");
  },

  "a reader that leaves in the middle leaves nothing open": async (store) => {
    await put(store, at, "x".repeat(1_000_000));
    const nar = await opened(store, at);
    const reader = nar.read(0, nar.fileSize).getReader();
    await reader.read();
    await reader.cancel();
  },

  "an empty file is a file": async (store) => {
    await put(store, at, "");
    const nar = await opened(store, at);
    assert.equal(nar.fileSize, 0);
    assert.equal((await nar.bytes()).length, 0);
  },

  "a put() of a missing file leaves nothing, and the other object of that NAR": async (
    store,
  ) => {
    await put(store, other, "old");
    await assert.rejects(store.put(at, "/nonexistent/file"));
    assert.equal(await store.open(at, STAYS), undefined);
    assert.equal(await textOf(store, other, 0, 3), "old");
  },

  "a reader whose object is removed gets all of its bytes or a failure, never fewer": async (
    store,
  ) => {
    const text = "x".repeat(3_000_000);
    await put(store, at, text);
    const [begun, late, whole] = [
      await opened(store, at),
      await opened(store, at),
      await opened(store, at),
    ];
    const reader = begun.read(0, text.length).getReader();
    const first = await reader.read();
    assert.equal(await store.remove(at), true);
    assert.equal(await store.open(at, STAYS), undefined);
    const reads = await Promise.allSettled([
      restOf(reader, first.value?.length ?? 0),
      restOf(late.read(0, text.length).getReader()),
      Promise.resolve(whole.bytes()).then((bytes) => bytes.length),
    ]);
    for (const read of reads) {
      if (read.status === "fulfilled") assert.equal(read.value, text.length);
    }
  },

  "open() with a signal that has aborted rejects with its reason, and nothing stays open": async (
    store,
  ) => {
    await put(store, at, "abcdef");
    const signal = AbortSignal.abort(new Error("the client left"));
    await assert.rejects(store.open(at, { signal }), /the client left/);
    await assert.rejects(store.open(other, { signal }), /the client left/);
    assert.equal(await textOf(store, at, 0, 6), "abcdef");
  },

  "open() whose signal aborts meanwhile gives the whole file or rejects": async (store) => {
    await put(store, at, "abcdef");
    const left = new AbortController();
    const opening = store.open(at, left);
    left.abort(new Error("the client left"));
    const [result] = await Promise.allSettled([opening]);
    if (result.status === "rejected") return assert.match(String(result.reason), /client left/);
    assert.equal(new TextDecoder().decode(await result.value?.bytes()), "abcdef");
  },

  "the signal of open() does not end a read of the open file": async (store) => {
    await put(store, at, "abcdef");
    const left = new AbortController();
    const nar = await store.open(at, left);
    left.abort();
    assert.equal(new TextDecoder().decode(await nar?.bytes()), "abcdef");
  },

  "a signal that aborts ends a read, and nothing stays open": async (store) => {
    await put(store, at, "x".repeat(1_000_000));
    const nar = await opened(store, at);
    const left = new AbortController();
    const reader = nar.read(0, nar.fileSize, { signal: left.signal }).getReader();
    assert.ok((await reader.read()).value?.length);
    // This one nobody reads on.
    const { signal } = left;
    await (await opened(store, at)).read(0, nar.fileSize, { signal }).getReader().read();
    left.abort(new Error("the client left"));
    await assert.rejects(restOf(reader), /the client left/);
  },

  "a signal that has aborted lets no read begin, and nothing stays open": async (store) => {
    await put(store, at, "abcdef");
    const signal = AbortSignal.abort(new Error("the client left"));
    const stream = (await opened(store, at)).read(0, 6, { signal });
    await assert.rejects(restOf(stream.getReader()), /the client left/);
    (await opened(store, at)).read(0, 6, { signal });
    const nar = await opened(store, at);
    await assert.rejects(async () => await nar.bytes({ signal }), /the client left/);
  },

  "a signal that aborts after a read has ended changes nothing": async (store) => {
    await put(store, at, "abcdef");
    const left = new AbortController();
    const { signal } = left;
    const stream = (await opened(store, at)).read(0, 6, { signal });
    assert.equal(await new Response(stream).text(), "abcdef");
    const bytes = await (await opened(store, at)).bytes({ signal });
    left.abort();
    assert.equal(new TextDecoder().decode(bytes), "abcdef");
  },

  "two put()s of one NAR at once leave two whole objects": async (store) => {
    await Promise.all([put(store, at, "same"), put(store, other, "same")]);
    assert.equal(await textOf(store, at, 0, 4), "same");
    assert.equal(await textOf(store, other, 0, 4), "same");
    assert.deepEqual((await namesOf(store)).toSorted(), [at, other].toSorted());
  },

  "remove() of an old object during a put() of the same NAR leaves the new one": async (store) => {
    await put(store, old, "old");
    const [, removed] = await Promise.all([put(store, at, "new"), store.remove(old)]);
    assert.equal(removed, true);
    assert.equal(await store.open(old, STAYS), undefined);
    assert.equal(await textOf(store, at, 0, 3), "new");
    assert.deepEqual(await namesOf(store), [at]);
  },

  "one hash in two compressions is two objects": async (store) => {
    const zstd = newStoredName(narName(sha256, "zstd"));
    await put(store, at, "x");
    await put(store, zstd, "zz");
    assert.deepEqual((await namesOf(store)).toSorted(), [at, zstd].toSorted());
  },

  "list() with sizes gives the size of each object": async (store) => {
    await put(store, at, "abc");
    assert.deepEqual(await Array.fromAsync(store.list("")), [{ at }]);
    const sizes = await Array.fromAsync(store.list("", { sizes: true }));
    assert.deepEqual(sizes, [{ at, fileSize: 3 }]);
  },

  "list() names the files with a prefix, however long, and no others": async (store) => {
    const far = newStoredName(narName(sha256FromDigest(new Uint8Array(32).fill(9)), "xz"));
    for (const one of [at, other, far]) await put(store, one, "x");
    const listed = async (prefix: string) => (
      (await Array.fromAsync(store.list(prefix))).map((one) => one.at).toSorted()
    );
    for (const length of [1, 2, 3, name.length]) {
      const prefix = name.slice(0, length);
      const expected = [at, other, far].filter((one) => one.startsWith(prefix)).toSorted();
      assert.deepEqual(await listed(prefix), expected);
    }
    assert.deepEqual(await listed(at), [at]);
    assert.deepEqual(await listed("zz"), []);
  },

  "reads do not change the seal that put() returned": async (store) => {
    const seal = await put(store, at, "abc");
    assert.equal(await sealOf(store, at), seal);
    await (await opened(store, at)).bytes();
    assert.equal(await sealOf(store, at), seal);
  },

  "two objects of the same bytes have two seals": async (store) => {
    assert.notEqual(await put(store, at, "abc"), await put(store, other, "abc"));
  },

  "remove() says whether there was anything to remove": async (store) => {
    await put(store, at, "x");
    assert.equal(await store.remove(at), true);
    assert.equal(await store.remove(at), false);
    assert.equal(await store.open(at, STAYS), undefined);
  },

  "an object that was read and then removed is absent": async (store) => {
    await put(store, at, "x");
    assert.equal((await (await opened(store, at)).bytes()).length, 1);
    await store.remove(at);
    assert.equal(await store.open(at, STAYS), undefined);
  },
};

export async function put(store: NarStore, at: StoredName, text: string): Promise<Seal> {
  using folder = tempFolder();
  const path = `${folder.path}/file`;
  await Deno.writeTextFile(path, text);
  return await store.put(at, path);
}

async function sealOf(store: NarStore, wanted: StoredName): Promise<Seal> {
  await using nar = await opened(store, wanted);
  return nar.seal;
}

async function opened(store: NarStore, wanted: StoredName) {
  const nar = await store.open(wanted, STAYS);
  assert.ok(nar, `${wanted} is not there`);
  return nar;
}

async function textOf(
  store: NarStore,
  wanted: StoredName,
  start: number,
  end: number,
): Promise<string> {
  const nar = await opened(store, wanted);
  return await new Response(nar.read(start, end)).text();
}

/** How many bytes come, beside those that came already. */
async function restOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  length = 0,
): Promise<number> {
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    length += piece.value.length;
  }
  return length;
}

async function namesOf(store: NarStore): Promise<StoredName[]> {
  return (await Array.fromAsync(store.list(""))).map((listed) => listed.at);
}
