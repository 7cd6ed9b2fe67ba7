import type { Bytes } from "../../src/base/bytes.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import type { Seal, StoredName } from "../../src/nix/stored_name.ts";
import type { NarStore, StoredNar } from "../../src/storage/nar_store.ts";
import { type MortalLife, turns } from "./mortal_life.ts";
import { tempFolder } from "./temp_folder.ts";

/** To make one and have the disk sync it takes longer than all that is then done with it. */
const EMPTY_DATABASE = await emptyDatabase();

/** The files that outlive a process: its NAR files, and a folder for its database and downloads. */
export class SmallDisk implements Disposable {
  readonly nars = new Map<StoredName, Bytes>();
  /** Set to have no file removed. */
  isStuck = false;
  /** Set to have nothing written to a growing file. */
  isFull = false;
  /** How long a change takes, in turns of the event loop. */
  slowness = 1;
  readonly #folder = tempFolder();
  /** The inodes of stored files that have another name among the growing ones. */
  readonly #stored = new Set<number | null>();
  readonly #observe: (bytes: number) => void;

  /** `observe` is called with the bytes that are there each time that something has grown. */
  constructor(observe: (bytes: number) => void) {
    this.#observe = observe;
    Deno.mkdirSync(this.temp);
    Deno.writeFileSync(`${this.path}/db.sqlite`, EMPTY_DATABASE);
  }

  get path(): string {
    return this.#folder.path;
  }

  get temp(): string {
    return `${this.path}/tmp`;
  }

  /** Of all NAR files, growing ones included. Several names of one file take its bytes once. */
  get bytes(): number {
    const sizes = new Map(this.growing.map((path) => {
      const { ino, size } = Deno.statSync(path);
      return [ino, size];
    }));
    for (const file of this.#stored) if (!sizes.delete(file)) this.#stored.delete(file);
    let bytes = sizes.values().reduce((sum, size) => sum + size, 0);
    for (const { length } of this.nars.values()) bytes += length;
    return bytes;
  }

  /** The paths of all growing files. */
  get growing(): readonly string[] {
    return [...Deno.readDirSync(this.temp)].flatMap((folder) =>
      [...Deno.readDirSync(`${this.temp}/${folder.name}`)]
        .map(({ name }) => `${this.temp}/${folder.name}/${name}`)
    );
  }

  grown(): void {
    this.#observe(this.bytes);
  }

  /** The NAR files as one process has them. It may die before a change. */
  store(life: MortalLife): NarStore {
    const { nars } = this;
    return {
      open: async (at) => {
        const bytes = nars.get(at);
        return bytes && storedNar(bytes);
      },
      put: async (at, path) => {
        await turns(this.slowness);
        await life.awake();
        life.check();
        const bytes = Deno.readFileSync(path);
        const { ino, nlink } = Deno.statSync(path);
        if ((nlink ?? 1) > 1) this.#stored.add(ino);
        Deno.removeSync(path);
        if (nars.has(at)) throw new Error(`${at} is used again`);
        nars.set(at, bytes);
        this.grown();
        await turns();
        return sealOf(bytes);
      },
      remove: async (at) => {
        await turns(this.slowness);
        await life.awake();
        life.check();
        if (this.isStuck) throw new Error("the disk is stuck");
        return nars.delete(at);
      },
      async *list(prefix) {
        for (const [at, { length }] of nars) {
          if (at.startsWith(prefix)) yield { at, fileSize: length };
        }
      },
    };
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}

async function emptyDatabase(): Promise<Bytes> {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path)).close();
  return Deno.readFileSync(path);
}

function storedNar(bytes: Bytes): StoredNar {
  return {
    fileSize: bytes.length,
    seal: sealOf(bytes),
    bytes: () => bytes,
    read: (start, end) => new Blob([bytes.subarray(start, end)]).stream(),
    async [Symbol.asyncDispose]() {},
  };
}

/** Nobody changes a file behind larder here. */
function sealOf({ length }: Uint8Array): Seal {
  return `${length}` as Seal;
}
