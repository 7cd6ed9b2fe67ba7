import assert from "node:assert/strict";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { TestCache } from "../support/test_cache.ts";
import type { Clauses } from "./contract.ts";

/** A storage that several larders share. Nothing tells them of each other's changes. */
export interface SharedStorage {
  readonly nars: Pick<NarStore, "list">;
  member(upstream: FakeUpstream): Promise<Member>;
}

/** A larder on a shared storage, with rows in memory. */
export interface Member extends AsyncDisposable {
  readonly cache: TestCache;
  readonly metadata: MetadataStore;
}

const object = makeStoreObject({ name: "shared-1.0", size: 200_000 });

export const memberClauses: Clauses<SharedStorage> = {
  [
    "a row in memory that another member evicted is noticed at the latest when its object is " +
    "gone, and the client gets the NAR all the same"
  ]: async (storage) => {
    await using scene = await Scene.open(storage);
    const { one, other, path, bytes } = scene;
    await evictAll(other);

    const answer = await one.cache.get(path);

    assert.equal(answer.headers.get("x-cache"), "MISS");
    assertSameBytes(await answer.bytes(), bytes);
    await one.cache.downloadsOver();
    assert.deepEqual(one.cache.logged("error"), []);
  },

  "an object that another member put in place of an evicted one is served": async (storage) => {
    await using scene = await Scene.open(storage);
    const { one, other, path, bytes } = scene;
    await evictAll(other);
    await (await other.cache.get(await other.cache.narPath(object.storePathHash))).bytes();
    await other.cache.downloadsOver();
    await scene.upstream.stop();

    const answer = await one.cache.get(path);

    assert.equal(answer.headers.get("x-cache"), "HIT");
    assertSameBytes(await answer.bytes(), bytes);
    assert.deepEqual(one.cache.logged("error"), []);
  },

  "two members that publish one NAR at once leave one object and one row": async (storage) => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using one = await storage.member(upstream);
    await using other = await storage.member(upstream);
    const path = await one.cache.narPath(object.storePathHash);
    await other.cache.narPath(object.storePathHash);
    const both = Promise.withResolvers<void>();
    let requests = 0;
    upstream.onRequest = async ({ path }) => {
      if (!path.startsWith("/nar/")) return undefined;
      if (++requests === 2) both.resolve();
      await both.promise;
      return undefined;
    };

    const right = (await upstream.narFileOf(object)).bytes;
    await Promise.all([one, other].map(async ({ cache }) => {
      assertSameBytes(await (await cache.get(path)).bytes(), right);
      await cache.downloadsOver();
    }));

    assert.equal(requests, 2);
    const objects = () => Array.fromAsync(storage.nars.list(""), ({ at }) => at);
    await eventually("the loser's object is gone", async () => (await objects()).length === 1);
    const [kept, ...more] = await other.metadata.keptNars("");
    assert.deepEqual([kept?.at, more], [(await objects())[0], []]);
    assert.deepEqual(await other.metadata.pendingFiles(), []);
    assert.equal((await other.metadata.stock()).keptBytes, right.length);
  },
};

async function evictAll({ cache }: Member): Promise<void> {
  const watcher = { progress: () => undefined, isWanted: () => true };
  await cache.space.collect({ targetBytes: 0, dryRun: false }, watcher);
}

/** Two members: one has stored the NAR and has its rows in memory, the other has just begun. */
class Scene implements AsyncDisposable {
  readonly path: string;
  readonly bytes: Uint8Array;

  private constructor(
    readonly upstream: FakeUpstream,
    readonly one: Member,
    readonly other: Member,
    { path, bytes }: { readonly path: string; readonly bytes: Uint8Array },
  ) {
    this.path = path;
    this.bytes = bytes;
  }

  static async open(storage: SharedStorage): Promise<Scene> {
    const upstream = await fakeUpstream({ objects: [object], stored: true });
    const one = await storage.member(upstream);
    const path = await one.cache.narPath(object.storePathHash);
    const bytes = await (await one.cache.get(path)).bytes();
    await one.cache.downloadsOver();
    await (await one.cache.get(path)).bytes();
    return new Scene(upstream, one, await storage.member(upstream), { path, bytes });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.other[Symbol.asyncDispose]();
    await this.one[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
  }
}
