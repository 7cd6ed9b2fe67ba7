import assert from "node:assert/strict";
import type { ShardComparer } from "../../src/cache/reconcile/compare_shard.ts";
import type { KeptFile, MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";
import { put as putFile } from "./nar_store_contract.ts";

/** A comparer of two stores that hold nothing yet. */
export interface ComparerScene {
  readonly comparer: ShardComparer;
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  /** Makes the folder of a shard unreadable. */
  spoil(shard: string): void;
}

const TEXT = "0123456789";

export const shardComparerClauses: Clauses<ComparerScene> = {
  "a shard without rows and files has no differences": async ({ comparer }) => {
    assert.deepEqual(await comparer.compare("00", true), { files: 0, lost: [], orphans: [] });
  },

  "a row without its file is lost, a file without a row is an orphan": async (scene) => {
    const [lost, orphan, both] = [file("lost"), file("orphan"), file("both")];
    for (const { at } of [orphan, both]) await putFile(scene.nars, at, TEXT);
    await addRow(scene, "lost", lost);
    await addRow(scene, "both", both);
    const compare = ({ at }: KeptFile) => scene.comparer.compare(at.slice(0, 5), true);
    assert.deepEqual(await compare(lost), { files: 0, lost: [lost.at], orphans: [] });
    assert.deepEqual(await compare(orphan), { files: 1, lost: [], orphans: [orphan.at] });
    assert.deepEqual(await compare(both), { files: 1, lost: [], orphans: [] });
  },

  "a file of another size is lost, if sizes are compared": async (scene) => {
    const cut = file("cut");
    await putFile(scene.nars, cut.at, TEXT.slice(1));
    await addRow(scene, "cut", cut);
    const shard = cut.at.slice(0, 2);
    assert.deepEqual(await scene.comparer.compare(shard, true), {
      ...{ files: 1, lost: [cut.at], orphans: [] },
    });
    assert.deepEqual(await scene.comparer.compare(shard, false), {
      ...{ files: 1, lost: [], orphans: [] },
    });
  },

  "an unreadable shard is a throw, and no lost file": async (scene) => {
    const kept = file("kept");
    await addRow(scene, "kept", kept);
    const shard = kept.at.slice(0, 2);
    scene.spoil(shard);
    await assert.rejects(scene.comparer.compare(shard, false));
  },
};

/** The file of the narinfo that `seed` stands for. */
function file(seed: string): KeptFile {
  return fileOf(narOf(hash(seed)).name, TEXT.length);
}

async function addRow({ metadata }: ComparerScene, seed: string, kept: KeptFile): Promise<void> {
  await metadata.apply([put(hash(seed), []), ...keep(kept)]);
}
