import assert from "node:assert/strict";
import { type NarName, narName } from "../../src/nix/nar_name.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { type FileIdentity, isSameIdentity, type NarStore } from "../../src/storage/nar_store.ts";
import { tempFolder } from "../support/temp_folder.ts";
import type { Clauses } from "./contract.ts";

const sha256 = sha256FromDigest(new Uint8Array(32).fill(7));
const name = narName(sha256, "xz");

export const narStoreClauses: Clauses<NarStore> = {
  "open() of an unknown name is undefined, not an error": async (store) => {
    assert.equal(await store.open(name), undefined);
  },

  "publish() then open() gives back size and bytes": async (store) => {
    await publish(store, name, "abcdef");
    using nar = await opened(store, name);
    assert.equal(nar.fileSize, 6);
    assert.equal(new TextDecoder().decode(nar.bytes()), "abcdef");
  },

  "publish() takes the file away from where it was": async (store) => {
    using folder = tempFolder();
    const path = `${folder.path}/file`;
    await Deno.writeTextFile(path, "abcdef");
    await store.publish(name, path);
    await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
  },

  "read(start, end) gives that part, and nothing for an empty one": async (store) => {
    await publish(store, name, "abcdef");
    assert.equal(await textOf(store, 4, 6), "ef");
    assert.equal(await textOf(store, 0, 3), "abc");
    assert.equal(await textOf(store, 6, 6), "");
  },

  "a reader that leaves in the middle leaves nothing open": async (store) => {
    await publish(store, name, "x".repeat(1_000_000));
    const nar = await opened(store, name);
    const reader = nar.read(0, nar.fileSize).getReader();
    await reader.read();
    await reader.cancel();
  },

  "an empty file is a file": async (store) => {
    await publish(store, name, "");
    using nar = await opened(store, name);
    assert.equal(nar.fileSize, 0);
    assert.equal(nar.bytes().length, 0);
  },

  "a publish() of what is not there keeps the previous bytes": async (store) => {
    await publish(store, name, "old");
    await assert.rejects(store.publish(name, "/nonexistent/file"));
    assert.equal(await textOf(store, 0, 3), "old");
  },

  "a reader keeps its bytes while the file is replaced and removed": async (store) => {
    await publish(store, name, "old");
    const nar = await opened(store, name);
    await publish(store, name, "new");
    assert.equal(await store.remove(name), true);
    assert.equal(await new Response(nar.read(0, 3)).text(), "old");
  },

  "two publish() calls of one name at once leave one whole file": async (store) => {
    await Promise.all([publish(store, name, "same"), publish(store, name, "same")]);
    assert.equal(await textOf(store, 0, 4), "same");
    assert.equal((await namesOf(store)).length, 1);
  },

  "one hash in two compressions is two files": async (store) => {
    const other = narName(sha256, "zstd");
    await publish(store, name, "x");
    await publish(store, other, "zz");
    assert.deepEqual((await namesOf(store)).sort(), [name, other].sort());
  },

  "list() says the size of each file": async (store) => {
    await publish(store, name, "abc");
    const listed = await Array.fromAsync(store.list());
    assert.deepEqual(listed, [{ name, fileSize: 3 }]);
  },

  "a file is the same one until it is replaced, as publish() tells": async (store) => {
    const published = await publish(store, name, "abc");
    assert.deepEqual(await identityOf(store), published);
    using nar = await opened(store, name);
    nar.bytes();
    assert.equal(nar.isUnchanged(), true);
    assert.ok(isSameIdentity(await identityOf(store), published));

    const replaced = await publish(store, name, "abc");
    assert.ok(!isSameIdentity(replaced, published));
    assert.ok(isSameIdentity(await identityOf(store), replaced));
  },

  "remove() says whether there was anything to remove": async (store) => {
    await publish(store, name, "x");
    assert.equal(await store.remove(name), true);
    assert.equal(await store.remove(name), false);
    assert.equal(await store.open(name), undefined);
  },
};

export async function publish(store: NarStore, as: NarName, text: string): Promise<FileIdentity> {
  using folder = tempFolder();
  const path = `${folder.path}/file`;
  await Deno.writeTextFile(path, text);
  return await store.publish(as, path);
}

async function identityOf(store: NarStore): Promise<FileIdentity> {
  using nar = await opened(store, name);
  return nar.identity;
}

async function opened(store: NarStore, wanted: NarName) {
  const nar = await store.open(wanted);
  assert.ok(nar, `${wanted} is not there`);
  return nar;
}

async function textOf(store: NarStore, start: number, end: number): Promise<string> {
  const nar = await opened(store, name);
  return await new Response(nar.read(start, end)).text();
}

async function namesOf(store: NarStore): Promise<NarName[]> {
  return (await Array.fromAsync(store.list())).map((listed) => listed.name);
}
