import assert from "node:assert/strict";
import {
  type ComparedStores,
  type ShardComparer,
  StoreComparer,
} from "../../../src/cache/reconcile/compare_shard.ts";
import { Reconciler, type StorageComparer } from "../../../src/cache/reconcile/reconciler.ts";
import { Repairer } from "../../../src/cache/reconcile/repairer.ts";
import { narNameOf, newStoredName, type StoredName } from "../../../src/nix/stored_name.ts";
import { Sweeper } from "../../../src/space/sweeper.ts";
import { LocalNarStore } from "../../../src/storage/local/local_nar_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { StockedSpace } from "../../support/stocked_space.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const SIZES = { sizes: true, pauseMs: 0 };

Deno.test("reconcile: it mends rows without files, and files without rows", async () => {
  await using scene = await Scene.open();
  const [whole, gone, short] = [
    await scene.keep("a"),
    await scene.keep("b"),
    await scene.keep("c"),
  ];
  Deno.removeSync(scene.pathOf(gone));
  Deno.truncateSync(scene.pathOf(short), 5);
  const orphan = newStoredName(narOf("orphan").name);
  const loser = newStoredName(narNameOf(whole));
  await scene.write(orphan);
  await scene.write(loser);

  const names = await scene.reconciler.pass({ sizes: false, pauseMs: 0 });
  assert.deepEqual([names.mended, names.complete], [3, true]);
  assert.deepEqual((await scene.namesOnDisk()).toSorted(), [whole, short].toSorted());
  const sizes = await scene.reconciler.pass(SIZES);
  assert.equal(sizes.mended, 1);

  assert.deepEqual(await scene.namesOnDisk(), [whole]);
  assert.equal((await scene.metadata.findNar(narNameOf(gone)))?.kept, undefined);
  assert.deepEqual(await scene.metadata.pendingFiles(), []);
  const { keptBytes, keptFiles, pendingBytes } = await scene.metadata.stock();
  assert.deepEqual([keptBytes, keptFiles, pendingBytes], [10, 1, 0]);
  assert.ok(scene.changes >= 3);
});

Deno.test("reconcile: a pending object is left alone", async () => {
  await using scene = await Scene.open();
  const publishing = newStoredName(narOf(hash("p")).name);
  await scene.metadata.apply([
    put(hash("p"), []),
    { kind: "nar-publishing", at: publishing, owner: "other" },
  ]);
  await scene.write(publishing);

  assert.equal((await scene.reconciler.pass(SIZES)).mended, 0);
  assert.deepEqual(await scene.namesOnDisk(), [publishing]);
});

Deno.test("reconcile: where most files are missing little is changed, and it is said", async () => {
  await using scene = await Scene.open();
  for (let index = 0; index < 220; index++) await scene.keep(`${index}`);
  Deno.removeSync(`${scene.path}/nar`, { recursive: true });

  const { complete, mended } = await scene.reconciler.pass(SIZES);

  assert.equal(complete, false);
  assert.ok(mended <= 100);
  await scene.reconciler.pass(SIZES);
  const told = scene.log.filter(({ msg }) => msg.startsWith("most nars are missing"));
  assert.deepEqual(told.map(({ level }) => level), ["error", "debug"]);
});

Deno.test("reconcile: files that cannot be listed are no files that are gone", async () => {
  await using scene = await Scene.open({ comparer: BROKEN });
  const kept = await scene.keep("a");
  assert.equal((await scene.reconciler.pass(SIZES)).complete, false);
  assert.ok((await scene.metadata.findNar(narNameOf(kept)))?.kept);
  assert.ok(scene.log.some(({ msg }) => msg === "not reconciled"));
});

Deno.test("reconcile: a store that stays away is an error once, not with each pass", async () => {
  await using scene = await Scene.open({ comparer: BROKEN });
  for (let pass = 0; pass < 3; pass++) await scene.reconciler.pass(SIZES);
  const levels = scene.log.filter(({ msg }) => msg === "not reconciled").map(({ level }) => level);
  assert.deepEqual(levels, ["error", "debug", "debug"]);
});

Deno.test("reconcile: a store that comes back ends the outage, without a whole pass", async () => {
  let isAway = true;
  const { promise: isOver, resolve } = Promise.withResolvers<void>();
  const comparer: ShardComparer = {
    compare(shard) {
      if (isAway) return Promise.reject(new Error("EIO"));
      // Nothing is compared beyond the second shard.
      if (shard === "01") resolve();
      return shard === "00"
        ? Promise.resolve({ files: 0, lost: [], orphans: [] })
        : new Promise(() => undefined);
    },
  };
  await using scene = await Scene.open({ comparer });
  await scene.reconciler.pass(SIZES);
  isAway = false;
  void scene.reconciler.pass(SIZES);
  await isOver;
  const over = scene.log.filter(({ msg }) => msg === "files and rows are compared again");
  assert.equal(over.length, 1);
});

Deno.test("reconcile: few files are compared in large shards, until one takes long", async () => {
  let nowMs = 0;
  const compared: string[] = [];
  const comparer = {
    isSmall: true,
    compare(shard: string) {
      nowMs += compared.push(shard) === 3 ? 21 : 20;
      return Promise.resolve({ files: 0, lost: [], orphans: [] });
    },
  };
  await using scene = await Scene.open({ comparer, nowMs: () => nowMs });

  await scene.reconciler.pass({ sizes: false, pauseMs: 0 });

  assert.deepEqual(compared.slice(0, 5), ["0", "1", "2", "30", "31"]);
  assert.equal(compared.length, 3 + 29 * 32);
  compared.length = 0;
  await scene.reconciler.pass(SIZES);
  assert.equal(compared.length, 1_024);
});

Deno.test("reconcile: few files are compared as many are", async () => {
  await using scene = await Scene.open({ isSmall: true });
  const [whole, gone] = [await scene.keep("a"), await scene.keep("b")];
  Deno.removeSync(scene.pathOf(gone));
  const orphan = newStoredName(narOf("orphan").name);
  await scene.write(orphan);

  assert.equal((await scene.reconciler.pass({ sizes: false, pauseMs: 0 })).mended, 2);

  assert.deepEqual(await scene.namesOnDisk(), [whole]);
  assert.equal((await scene.metadata.findNar(narNameOf(gone)))?.kept, undefined);
});

const BROKEN: ShardComparer = { compare: () => Promise.reject(new Error("EIO")) };

interface SceneOptions {
  readonly comparer?: StorageComparer;
  readonly isSmall?: boolean;
  readonly nowMs?: () => number;
}

function comparerOf(stores: ComparedStores, { isSmall = false }: SceneOptions): StorageComparer {
  const inner = new StoreComparer(stores);
  return { isSmall, compare: (shard, sizes) => inner.compare(shard, sizes) };
}

class Scene implements AsyncDisposable {
  readonly log: { readonly level: string; readonly msg: string }[] = [];
  readonly reconciler: Reconciler;
  changes = 0;
  readonly #folder = tempFolder();
  readonly #stocked: StockedSpace;
  readonly #nars: LocalNarStore;

  private constructor(stocked: StockedSpace, options: SceneOptions) {
    this.#stocked = stocked;
    this.#nars = new LocalNarStore(`${this.path}/nar`);
    const log = createLogger("debug", { write: (line) => void this.log.push(JSON.parse(line)) });
    const { metadata } = this;
    const nars = this.#nars;
    const sweeper = new Sweeper({ metadata, nars, owner: "we", log });
    this.reconciler = new Reconciler({
      comparer: options.comparer ?? comparerOf({ metadata, nars }, options),
      repairer: new Repairer({ stores: { metadata, nars }, sweeper, owner: "we", log }),
      firstPassOver: () => undefined,
      changed: async () => void this.changes++,
      nowMs: options.nowMs ?? (() => 1),
      log,
    });
  }

  static async open(options: SceneOptions = {}): Promise<Scene> {
    return new Scene(await StockedSpace.open(Infinity), options);
  }

  get path(): string {
    return this.#folder.path;
  }

  get metadata() {
    return this.#stocked.metadata;
  }

  /** Stores a NAR file of ten bytes with its row. */
  async keep(seed: string): Promise<StoredName> {
    const path = hash(seed);
    const file = fileOf(narOf(path).name, 10);
    await this.write(file.at);
    await this.metadata.apply([put(path, []), ...keep(file)]);
    return file.at;
  }

  async write(at: StoredName): Promise<void> {
    Deno.writeTextFileSync(`${this.path}/new`, "0123456789");
    await this.#nars.put(at, `${this.path}/new`);
  }

  pathOf(at: StoredName): string {
    return `${this.path}/nar/${at.slice(0, 2)}/${at}`;
  }

  async namesOnDisk(): Promise<readonly StoredName[]> {
    return await Array.fromAsync(this.#nars.list(""), ({ at }) => at);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stocked[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}
