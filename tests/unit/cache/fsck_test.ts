import assert from "node:assert/strict";
import { fsck, type FsckProblem, type FsckProgress } from "../../../src/cache/reconcile/fsck.ts";
import { Repairer } from "../../../src/cache/reconcile/repairer.ts";
import type { StoredName } from "../../../src/nix/stored_name.ts";
import { Sweeper } from "../../../src/space/sweeper.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { fileOf, hash, keep, narOf, put, source } from "../../support/metadata_rows.ts";
import { STAYS } from "../../support/staying_client.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("fsck: finds and mends in any stores behind the ports", async () => {
  await using scene = new Scene();
  const [whole, gone] = [await scene.keep("whole"), await scene.keep("gone")];
  await scene.nars.remove(gone);
  const orphan = fileOf(narOf("orphan").name).at;
  await scene.write(orphan);

  const found = await scene.fsck();
  assert.deepEqual(found.map(({ kind, at }) => [kind, at]).toSorted(), [
    ["damaged", gone],
    ["stray", orphan],
  ]);
  assert.deepEqual((await scene.fsck({ repair: true })).map(({ mended }) => mended), [true, true]);
  assert.deepEqual(await scene.fsck(), []);
  assert.deepEqual(await Array.fromAsync(scene.nars.list(""), ({ at }) => at), [whole]);
});

Deno.test("fsck: of a lost file it says who had it, and what clients get now", async () => {
  await using scene = new Scene();
  await scene.nars.remove(await scene.keep("gone"));
  const { upstream } = source;
  const hadIt = `no file where there should be 10 bytes; larder asks its upstreams for ${
    hash("gone")
  } again: ${upstream} had it`;
  assert.deepEqual((await scene.fsck()).map(({ detail }) => detail), [hadIt]);

  await using pushed = new Scene();
  await pushed.nars.remove(await pushed.keep("gone", []));
  assert.match((await pushed.fsck())[0]?.detail ?? "", /is 404 until somebody pushes it again$/);
});

Deno.test("fsck: an orphan that cannot be opened is a problem, and stays", async () => {
  await using scene = new Scene();
  const orphan = fileOf(narOf("orphan").name).at;
  await scene.write(orphan);
  scene.nars.open = () => Promise.reject(new Error("EIO"));
  const found = await scene.fsck({ repair: true });
  assert.deepEqual(found.map(({ at, detail, mended }) => [at, detail, mended]), [
    [orphan, "EIO", false],
  ]);
  assert.deepEqual(await Array.fromAsync(scene.nars.list(""), ({ at }) => at), [orphan]);
});

Deno.test("fsck: damage that the metadata store finds in itself stays a problem", async () => {
  await using scene = new Scene(["page 7 is torn"]);
  const problem = { kind: "database", detail: "page 7 is torn", mended: false };
  assert.deepEqual(await scene.fsck({ repair: true }), [problem]);
});

Deno.test("fsck: its progress counts files, however their names begin", async () => {
  await using scene = new Scene();
  for (const seed of ["one", "two", "three"]) await scene.keep(seed);
  await scene.fsck();
  const shares = scene.progress.map(({ files, filesAll }) => `${files} of ${filesAll}`);
  assert.deepEqual([...new Set(shares)], ["0 of 3", "1 of 3", "2 of 3", "3 of 3"]);
});

class Scene implements AsyncDisposable {
  readonly progress: FsckProgress[] = [];
  readonly nars = new MemoryNarStore();
  readonly #metadata: MemoryMetadataStore & { damage(): Promise<readonly string[]> };
  readonly #folder = tempFolder();

  constructor(damage: readonly string[] = []) {
    this.#metadata = Object.assign(new MemoryMetadataStore(), { damage: async () => damage });
  }

  async fsck({ repair = false } = {}): Promise<readonly FsckProblem[]> {
    const { nars } = this;
    const stores = { metadata: this.#metadata, nars };
    const log = createLogger("error", { write: () => undefined });
    const sweeper = new Sweeper({ ...stores, owner: "fsck", log });
    const repairer = new Repairer({ stores, sweeper, owner: "fsck", log });
    const problems: FsckProblem[] = [];
    await fsck({ ...stores, ...STAYS, repairer }, { verifyContent: false, repair }, {
      problem: (problem) => void problems.push(problem),
      progress: (progress) => void this.progress.push(progress),
    });
    return problems;
  }

  /** Stores a NAR file of ten bytes with its row. */
  async keep(seed: string, sources = [source]): Promise<StoredName> {
    const path = hash(seed);
    const file = fileOf(narOf(path).name, 10);
    await this.write(file.at);
    await this.#metadata.apply([{ ...put(path, []), sources }, ...keep(file)]);
    return file.at;
  }

  async write(at: StoredName): Promise<void> {
    Deno.writeTextFileSync(`${this.#folder.path}/new`, "0123456789");
    await this.nars.put(at, `${this.#folder.path}/new`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#metadata[Symbol.asyncDispose]();
    await this.nars[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}
