import assert from "node:assert/strict";
import fc from "fast-check";
import { fsck, type FsckProblem } from "../../src/cache/reconcile/fsck.ts";
import { Repairer } from "../../src/cache/reconcile/repairer.ts";
import type { KeptNar, NarRecord } from "../../src/metadata/metadata_store.ts";
import type { PendingFile } from "../../src/metadata/space_keeper.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import type { StoredName } from "../../src/nix/stored_name.ts";
import { Sweeper } from "../../src/space/sweeper.ts";
import type { ListedNar, ListOptions, OpenOptions } from "../../src/storage/nar_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../support/memory_nar_store.ts";
import { fileOf, hash, narOf, put } from "../support/metadata_rows.ts";
import { checkProperty } from "../support/property.ts";
import { STAYS } from "../support/staying_client.ts";
import { tempFolder } from "../support/temp_folder.ts";

const STEPS = ["begin", "write", "keep", "mark", "remove", "settle"] as const;

const RUNS = 300;

const MOMENTS = {
  "a publish between the list and the rows": [1, [2]],
  "a row between the rows and the intents": [2, [0, 1]],
  "an eviction between the list and the rows": [3, [3]],
  "a publish and an eviction around the rows": [1, [2, 3]],
} as const;

for (const [moment, [before, afterCalls]] of Object.entries(MOMENTS)) {
  Deno.test(`fsck: ${moment} is no problem`, async () => {
    for (const repair of [false, true]) {
      assert.deepEqual(await problemsOf(before, afterCalls, repair), []);
    }
  });
}

checkProperty(
  "fsck: a file that a server publishes or removes meanwhile is no problem",
  fc.asyncProperty(
    fc.nat(STEPS.length),
    fc.array(fc.nat(2), { size: "max", maxLength: 12 }),
    fc.boolean(),
    async (before, afterCalls, repair) => {
      assert.deepEqual(await problemsOf(before, afterCalls, repair), []);
    },
  ),
  { runs: RUNS },
);

/** So many steps of the file's life come before the check, and after each of its calls. */
async function problemsOf(
  before: number,
  afterCalls: readonly number[],
  repair: boolean,
): Promise<readonly FsckProblem[]> {
  await using server = new Server();
  await server.live(before);
  const rest = [...afterCalls];
  server.afterCall = () => server.live(rest.shift() ?? 0);
  return await server.fsck(repair);
}

/** A server with one file, and a check of its stores. */
class Server implements AsyncDisposable {
  /** Runs after each call of the check that concerns the file. */
  afterCall: () => Promise<void> = () => Promise.resolve();
  readonly #path = hash("file");
  readonly #file = fileOf(narOf(this.#path).name, 10);
  readonly #folder = tempFolder();
  readonly #after = async (prefix: string) => {
    if (this.#file.at.startsWith(prefix)) await this.afterCall();
  };
  readonly #nars = new WatchedNars(this.#after);
  readonly #metadata = new WatchedMetadata(this.#after);
  readonly #stepsLeft: (typeof STEPS)[number][] = [...STEPS];

  /** Goes on in the life of the file. */
  async live(steps: number): Promise<void> {
    for (const step of this.#stepsLeft.splice(0, steps)) await this.#take(step);
  }

  async fsck(repair: boolean): Promise<readonly FsckProblem[]> {
    const stores = { metadata: this.#metadata, nars: this.#nars };
    const log = createLogger("error", { write: () => undefined });
    const sweeper = new Sweeper({ ...stores, owner: "fsck", log });
    const repairer = new Repairer({ stores, sweeper, owner: "fsck", log });
    const problems: FsckProblem[] = [];
    await fsck({ ...stores, ...STAYS, repairer }, { verifyContent: false, repair }, {
      problem: (problem) => void problems.push(problem),
      progress: () => undefined,
    });
    return problems;
  }

  async #take(step: (typeof STEPS)[number]): Promise<void> {
    const [metadata, at, owner] = [this.#metadata, this.#file.at, "server"];
    switch (step) {
      case "begin":
        return await metadata.apply([put(this.#path, []), { kind: "nar-publishing", at, owner }]);
      case "write":
        Deno.writeTextFileSync(`${this.#folder.path}/new`, "0123456789");
        return void await this.#nars.put(at, `${this.#folder.path}/new`);
      case "keep":
        return await metadata.apply([{ kind: "nar-kept", file: this.#file, owner, atMs: 1 }]);
      case "mark":
        return await metadata.apply([{ kind: "nar-marked", at, owner }]);
      case "remove":
        return void await this.#nars.remove(at);
      case "settle":
        return await metadata.apply([{ kind: "nar-gone", at }]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#metadata[Symbol.asyncDispose]();
    await this.#nars[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}

/** Waits after each call for `after`, which gets the beginning of the names. */
class WatchedMetadata extends MemoryMetadataStore {
  readonly #after: (prefix: string) => Promise<void>;

  constructor(after: (prefix: string) => Promise<void>) {
    super();
    this.#after = after;
  }

  async damage(): Promise<readonly string[]> {
    return [];
  }

  override async keptNars(prefix: string): Promise<readonly KeptNar[]> {
    const nars = await super.keptNars(prefix);
    await this.#after(prefix);
    return nars;
  }

  override async findNar(narName: NarName): Promise<NarRecord | undefined> {
    const nar = await super.findNar(narName);
    await this.#after("");
    return nar;
  }

  override async pendingFiles(): Promise<readonly PendingFile[]> {
    const files = await super.pendingFiles();
    await this.#after("");
    return files;
  }
}

class WatchedNars extends MemoryNarStore {
  readonly #after: (prefix: string) => Promise<void>;

  constructor(after: (prefix: string) => Promise<void>) {
    super();
    this.#after = after;
  }

  override async *list(prefix: string, options?: ListOptions): AsyncIterable<ListedNar> {
    yield* await Array.fromAsync(super.list(prefix, options));
    await this.#after(prefix);
  }

  override async open(at: StoredName, options: OpenOptions) {
    const stored = await super.open(at, options);
    await this.#after("");
    return stored;
  }
}
