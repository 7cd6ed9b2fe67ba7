import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import type { FileIdentity, NarStore, StoredNar } from "../../src/storage/nar_store.ts";
import { type MortalLife, turns } from "./mortal_life.ts";
import { tempFolder } from "./temp_folder.ts";

/** To make one and have the disk sync it takes longer than all that is then done with it. */
const EMPTY_DATABASE = await emptyDatabase();

/** What outlives a process: a folder for its database and its growing files, and its NAR files. */
export class SmallDisk implements Disposable {
  readonly nars = new Map<NarName, Uint8Array<ArrayBuffer>>();
  /** Set to have no file removed. */
  isStuck = false;
  /** Set to have nothing written to a growing file. */
  isFull = false;
  /** How long a change takes, in turns of the event loop. */
  slowness = 1;
  readonly #folder = tempFolder();
  readonly #observe: (bytes: number) => void;

  /** `observe` is told how much is there each time that something has grown. */
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

  /** Of all NAR files, growing ones included. */
  get bytes(): number {
    let bytes = this.growing.reduce((sum, path) => sum + Deno.statSync(path).size, 0);
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
      open: async (name) => {
        const bytes = nars.get(name);
        return bytes && storedNar(bytes);
      },
      publish: async (name, path) => {
        await turns(this.slowness);
        life.check();
        const bytes = Deno.readFileSync(path);
        Deno.removeSync(path);
        nars.set(name, bytes);
        this.grown();
        await turns();
        return identityOf(bytes);
      },
      remove: async (name) => {
        await turns(this.slowness);
        life.check();
        if (this.isStuck) throw new Error("the disk is stuck");
        return nars.delete(name);
      },
      async *list() {
        for (const [name, bytes] of nars) yield { name, fileSize: bytes.length };
      },
    };
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}

async function emptyDatabase(): Promise<Uint8Array<ArrayBuffer>> {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  (await openDatabase(path)).close();
  return Deno.readFileSync(path);
}

function storedNar(bytes: Uint8Array<ArrayBuffer>): StoredNar {
  return {
    fileSize: bytes.length,
    identity: identityOf(bytes),
    isUnchanged: () => true,
    bytes: () => bytes,
    read: (start, end) => new Blob([bytes.subarray(start, end)]).stream(),
    [Symbol.dispose]() {},
  };
}

/** Nobody changes a file behind larder here. */
function identityOf({ length }: Uint8Array): FileIdentity {
  return { inode: 1, fileSize: length, modifiedAtMs: 0, changedAtMs: 0 };
}
