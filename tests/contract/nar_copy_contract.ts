import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { NarCopy } from "../../src/cache/migrate/copy_nars.ts";
import type { KeptFile } from "../../src/metadata/metadata_store.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { STAYS } from "../support/staying_client.ts";
import type { Clauses } from "./contract.ts";

/** Two empty stores. */
export interface CopyScene {
  readonly from: NarStore;
  readonly to: NarStore;
  readonly folder: string;
}

const [a, b, c] = [hash("a"), hash("b"), hash("c")];
const GOES_ON = STAYS.signal;

export const narCopyClauses: Clauses<CopyScene> = {
  "each kept file is copied once, as it is": async (scene) => {
    const { metadata, copy } = copyOf(scene);
    const files = [
      await keepFile(scene, metadata, a),
      await keepFile(scene, metadata, b, { byteLength: 300_000 }),
    ];
    const copiedBytes = files.reduce((sum, { fileSize }) => sum + fileSize, 0);
    assert.deepEqual(await copy.pass(GOES_ON), { compared: 2, copied: 2, copiedBytes });
    assert.deepEqual(await copy.pass(GOES_ON), { compared: 2, copied: 0, copiedBytes: 0 });
    assert.deepEqual(copy.notCopied, []);
    for (const { at } of files) {
      assert.deepEqual(await bytesIn(scene.to, at), await bytesIn(scene.from, at));
    }
  },

  "a later pass copies the files that came meanwhile": async (scene) => {
    const { metadata, copy } = copyOf(scene);
    await keepFile(scene, metadata, a);
    await copy.pass(GOES_ON);
    await keepFile(scene, metadata, b);
    assert.equal((await copy.pass(GOES_ON)).copied, 1);
  },

  "a file that is not as its row says is named, and not copied": async (scene) => {
    const { metadata, copy } = copyOf(scene);
    const flipped = await keepFile(scene, metadata, a, {
      changed: (bytes) => bytes.fill(1, 500, 501),
    });
    const cut = await keepFile(scene, metadata, b, {
      changed: (bytes) => bytes.subarray(1),
    });
    const missing = await keepFile(scene, metadata, c);
    await scene.from.remove(missing.at);
    assert.equal((await copy.pass(GOES_ON)).copied, 0);
    const reasons = new Map(copy.notCopied.map(({ at, reason }) => [at, reason]));
    assert.equal(reasons.get(flipped.at), "its bytes have changed");
    assert.equal(reasons.get(cut.at), "it has 999 bytes, not 1000");
    assert.equal(reasons.get(missing.at), "it is missing");
    assert.deepEqual(await Array.fromAsync(scene.to.list("")), []);
    assert.deepEqual([...Deno.readDirSync(scene.folder)], []);
  },

  "a file that is evicted meanwhile is no problem": async (scene) => {
    const { metadata, copy } = copyOf(scene);
    const { at } = await keepFile(scene, metadata, a);
    const { open } = scene.from;
    scene.from.open = async (wanted, options) => {
      await metadata.apply([{ kind: "nar-marked", at, owner: "we" }, { kind: "nar-gone", at }]);
      await scene.from.remove(at);
      return await open.call(scene.from, wanted, options);
    };
    await copy.pass(GOES_ON);
    assert.deepEqual(copy.notCopied, []);
  },

  "an object of another size in the new store is replaced": async (scene) => {
    const { metadata, copy } = copyOf(scene);
    const { at } = await keepFile(scene, metadata, a);
    await putBytes(scene.to, scene.folder, at, new Uint8Array(1));
    assert.equal((await copy.pass(GOES_ON)).copied, 1);
    assert.deepEqual(await bytesIn(scene.to, at), await bytesIn(scene.from, at));
  },

  "seal() writes the seals of the new store, for the files that are there": async (scene) => {
    const { metadata, copy } = copyOf(scene);
    const there = await keepFile(scene, metadata, a);
    await copy.pass(GOES_ON);
    const later = await keepFile(scene, metadata, b);
    await copy.seal(GOES_ON);
    await using stored = await scene.to.open(there.at, STAYS);
    assert.ok(stored);
    assert.equal((await metadata.findNar(narOf(a).name))?.kept?.seal, stored.seal);
    assert.equal((await metadata.findNar(narOf(b).name))?.kept?.seal, later.seal);
  },

  "a copy that is stopped leaves nothing behind, and goes on later": async (scene) => {
    const { metadata, copy } = copyOf(scene);
    for (const path of [a, b, c]) await keepFile(scene, metadata, path);
    const stopping = new AbortController();
    const { put: putWhole } = scene.to;
    scene.to.put = async (at, path) => {
      stopping.abort(new Error("stopped"));
      return await putWhole.call(scene.to, at, path);
    };
    await assert.rejects(copy.pass(stopping.signal), /stopped/);
    assert.deepEqual([...Deno.readDirSync(scene.folder)], []);
    await copy.pass(GOES_ON);
    assert.deepEqual(await copy.pass(GOES_ON), { compared: 3, copied: 0, copiedBytes: 0 });
  },
};

function copyOf(scene: CopyScene) {
  const metadata = new MemoryMetadataStore();
  return { metadata, copy: new NarCopy({ metadata, ...scene }) };
}

interface Content {
  readonly byteLength?: number;
  /** Default: as they are. */
  readonly changed?: (bytes: Uint8Array) => Uint8Array;
}

/** A kept file whose row has the hash and size of `bytes`; the store has them as `changed`. */
async function keepFile(
  scene: CopyScene,
  metadata: MemoryMetadataStore,
  path: typeof a,
  { byteLength = 1_000, changed }: Content = {},
): Promise<KeptFile> {
  const bytes = new TextEncoder().encode(path.repeat(byteLength)).subarray(0, byteLength);
  const fileHash = sha256FromDigest(createHash("sha256").update(bytes).digest());
  const { at } = fileOf(narOf(path).name);
  const seal = await putBytes(scene.from, scene.folder, at, changed?.(bytes) ?? bytes);
  const file = { at, seal, fileHash, fileSize: byteLength };
  await metadata.apply([put(path, []), ...keep(file)]);
  return file;
}

async function putBytes(
  store: NarStore,
  folder: string,
  at: KeptFile["at"],
  bytes: Uint8Array,
) {
  Deno.writeFileSync(`${folder}/put`, bytes);
  return await store.put(at, `${folder}/put`);
}

async function bytesIn(store: NarStore, at: KeptFile["at"]): Promise<Uint8Array | undefined> {
  return await (await store.open(at, STAYS))?.bytes();
}
