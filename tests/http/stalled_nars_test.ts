import assert from "node:assert/strict";
import type { Answer } from "../../src/http/message/message.ts";
import { HotNarStore } from "../../src/storage/hot_nar_store.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { StalledClients, StalledSocket } from "../support/stalled_clients.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";

const KIB = 1_024;
const FILES = 40;
const FILE_BYTES = 240_000;

/** The most that clients that do not read may hold. */
const HELD_BYTES_MAX = 1_024 * KIB;
/** Files in memory: more than those that clients may hold. */
const HOT_BYTES_MAX = 2_048 * KIB;

/** A client takes less than this much of a file. */
const TAKEN_BYTES = 8 * KIB;

Deno.test("stalled NARs: clients of many small files do not hold a copy each", async () => {
  await using scene = await Scene.open();

  for (const path of scene.paths) await scene.stall(path);

  assert.ok(scene.heldBytes <= HELD_BYTES_MAX + FILE_BYTES, `${scene.heldBytes} bytes`);
});

Deno.test("stalled NARs: a file in memory leaves from there all the same", async () => {
  await using scene = await Scene.open();
  const [hot = ""] = scene.paths;
  for (const path of scene.paths.slice(0, 8)) await scene.stall(path);
  const held = scene.heldBytes;

  for (let count = 0; count < FILES; count++) await scene.stall(hot);

  assert.ok(scene.isWhole, "its bytes were shared");
  assert.equal(scene.heldBytes, held);
});

Deno.test("stalled NARs: once the clients have left, small files leave whole again", async () => {
  await using scene = await Scene.open();
  for (const path of scene.paths) await scene.stall(path);
  assert.ok(!scene.isWhole);

  for (const socket of scene.clients.sockets) socket.leave();
  await scene.stall(scene.paths.at(-1) ?? "");

  assert.ok(scene.isWhole);
});

/** A cache that keeps small files, and clients that take the beginning of them. */
class Scene implements AsyncDisposable {
  readonly paths: readonly string[];
  readonly clients: StalledClients;
  readonly #resources: AsyncDisposableStack;
  readonly #held = new Set<ArrayBuffer>();
  #last: Answer | undefined;

  private constructor(
    cache: TestCache,
    paths: readonly string[],
    resources: AsyncDisposableStack,
  ) {
    this.paths = paths;
    this.#resources = resources;
    const handle: TestCache["handle"] = async (request, delivery) => {
      const answer = await cache.handle(request, delivery);
      if (answer.body instanceof Uint8Array) this.#held.add(answer.body.buffer);
      this.#last = answer;
      return answer;
    };
    const limits = { largeWriteBytesMax: HELD_BYTES_MAX, perAddressMax: Infinity };
    this.clients = resources.use(new StalledClients(handle, limits));
  }

  static async open(): Promise<Scene> {
    await using resources = new AsyncDisposableStack();
    const objects = Array.from(
      { length: FILES },
      (_, seed) => makeStoreObject({ name: "small", size: FILE_BYTES, seed }),
    );
    const upstream = resources.use(await fakeUpstream({ objects, stored: true }));
    const { path } = resources.use(tempFolder());
    const limits = { fileBytesMax: 2 * FILE_BYTES, totalBytesMax: HOT_BYTES_MAX };
    const nars = new HotNarStore(new LocalNarStore(path), limits);
    const cache = resources.use(await TestCache.open({ upstreams: [upstream], nars }));
    const paths = await Promise.all(
      objects.map(({ storePathHash }) => cache.narPath(storePathHash)),
    );
    for (const path of paths) await (await cache.get(path)).bytes();
    await cache.downloadsOver();
    return new Scene(cache, paths, resources.move());
  }

  /** Memory of all files that left in one piece. */
  get heldBytes(): number {
    return [...this.#held].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** True if the last file left in one piece. */
  get isWhole(): boolean {
    return this.#last?.body instanceof Uint8Array;
  }

  /** Another client, which waits. */
  async stall(path: string): Promise<void> {
    this.clients.add(new StalledSocket(TAKEN_BYTES, path));
    await this.clients.allWait();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}
