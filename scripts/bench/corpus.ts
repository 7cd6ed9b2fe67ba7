import { createHash } from "node:crypto";
import { formatSha256, type NarHash, parseFileHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { formatNixCacheInfo } from "../../src/nix/nix_cache_info.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import {
  type DialectRow,
  DIALECTS,
  type NarFile,
  narinfoText,
} from "../../tests/support/dialects.ts";
import { makeStoreObject, type StoreObject } from "../../tests/support/store_object.ts";

/** A store object whose narinfo, and maybe NAR, is in the upstream's directory. */
export interface Published {
  readonly storePath: string;
  /** Path of its narinfo below a cache's URL. */
  readonly narinfoPath: string;
  readonly narHash: NarHash;
  readonly narSize: number;
}

export interface NarinfoSet {
  readonly count: number;
  /** Sets of different seeds have nothing in common. */
  readonly seed: number;
}

export interface NarSet extends NarinfoSet {
  /** Size of the file that is the NAR's whole content. */
  readonly bytes: number;
}

/** Folders that every machine has. */
const REAL_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/bin"];

/** Number of the median path in nixpkgs, itself included. */
const REFERENCES_COUNT = 6;

/** A signed binary cache of files, as `nix copy --to 'file:///…?compression=none'` makes it. */
export class Corpus {
  readonly folder: string;
  /** Cached, as several measures want the same set. */
  readonly #sets = new Map<string, readonly Published[]>();
  readonly #key = generateSecretKey("larder-bench-upstream-1");

  constructor(folder: string) {
    this.folder = folder;
    Deno.mkdirSync(`${folder}/nar`, { recursive: true });
    const info = { storeDir: "/nix/store", wantMassQuery: true, priority: 40 };
    Deno.writeTextFileSync(`${folder}/nix-cache-info`, formatNixCacheInfo(info));
  }

  get publicKey() {
    return this.#key.publicKey;
  }

  /** Objects with small NARs. */
  putNarinfos(set: NarinfoSet): readonly Published[] {
    return this.#once(`narinfos ${JSON.stringify(set)}`, () => this.#makeNarinfos(set));
  }

  /** Objects with incompressible NARs, like those of `nar.xz` files. */
  putNars(set: NarSet): readonly Published[] {
    return this.#once(`nars ${JSON.stringify(set)}`, () => this.#makeNars(set));
  }

  /** Objects made of this machine's programs and libraries, compressed. Takes seconds for each. */
  async putRealNars(set: NarSet, compression: "xz" | "zstd"): Promise<readonly Published[]> {
    const name = `real ${compression} ${JSON.stringify(set)}`;
    const published = this.#sets.get(name) ?? await this.#makeRealNars(set, compression);
    this.#sets.set(name, published);
    return published;
  }

  #once(set: string, make: () => readonly Published[]): readonly Published[] {
    const published = this.#sets.get(set) ?? make();
    this.#sets.set(set, published);
    return published;
  }

  #makeNarinfos({ count, seed }: NarinfoSet): readonly Published[] {
    const objects: StoreObject[] = [];
    for (let at = 0; at < count; at++) {
      objects.push(makeStoreObject({
        name: `object-of-the-bench-${at}`,
        seed,
        references: objects.slice(1 - REFERENCES_COUNT),
        selfReference: true,
        deriver: true,
      }));
    }
    return objects.map((object) => {
      // larder fetches some of them ahead.
      Deno.writeFileSync(`${this.folder}/nar/${object.narHash}.nar`, object.nar);
      return this.#put(object);
    });
  }

  #makeNars({ count, seed, bytes }: NarSet): readonly Published[] {
    return Array.from({ length: count }, (_, at) => {
      const name = `file-of-${bytes}-bytes`;
      const object = makeStoreObject({ name, size: bytes, seed: seed * 1_000 + at });
      Deno.writeFileSync(`${this.folder}/nar/${object.narHash}.nar`, object.nar);
      return this.#put(object);
    });
  }

  async #makeRealNars(
    { count, seed, bytes }: NarSet,
    compression: "xz" | "zstd",
  ): Promise<readonly Published[]> {
    const content = realContent(bytes);
    const published: Published[] = [];
    for (let at = 0; at < count; at++) {
      const name = `programs-of-${bytes}-bytes-in-${compression}`;
      const file = new Uint8Array(content);
      // Those of other numbers have other hashes.
      file.set(new TextEncoder().encode(`${seed} ${at} `));
      const object = makeStoreObject({ name, tree: { file }, seed: seed * 1_000 + at });
      const packed = await compressed(object.nar, compression);
      const digest = sha256FromDigest(createHash("sha256").update(packed).digest());
      const fileHash = parseFileHash(formatSha256(digest));
      const narFile = { compression, bytes: packed, fileHash } as const;
      Deno.writeFileSync(`${this.folder}/${DIALECTS.nixos.narUrl(object, narFile)}`, packed);
      published.push(this.#put(object, { row: DIALECTS.nixos, file: narFile }));
    }
    return published;
  }

  #put(object: StoreObject, as: { row: DialectRow; file: NarFile } = asItIs(object)): Published {
    const { storePath, storePathHash, narHash, narSize } = object;
    const text = narinfoText({ ...as, object, key: this.#key });
    const narinfoPath = `/${storePathHash}.narinfo`;
    Deno.writeTextFileSync(this.folder + narinfoPath, text);
    return { storePath, narinfoPath, narHash, narSize };
  }
}

/** A row and file without compression: the file is the NAR. */
function asItIs({ nar, narHash }: StoreObject): { row: DialectRow; file: NarFile } {
  const fileHash = parseFileHash(formatSha256(narHash));
  return { row: DIALECTS.directory, file: { compression: "none", bytes: nar, fileHash } };
}

/** The same on one machine: its programs and libraries, in the order of their names. */
function realContent(bytes: number): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(bytes);
  let at = 0;
  for (const folder of REAL_FOLDERS) {
    for (const name of namesIn(folder)) {
      if (at === bytes) return content;
      const file = Deno.readFileSync(`${folder}/${name}`).subarray(0, bytes - at);
      content.set(file, at);
      at += file.length;
    }
  }
  return content.slice(0, at);
}

function namesIn(folder: string): readonly string[] {
  try {
    const files = [...Deno.readDirSync(folder)].filter(({ isFile }) => isFile);
    return files.map(({ name }) => name).sort();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** Compressed bytes, by the program of that name at level 2, which is fast. */
async function compressed(
  bytes: Uint8Array<ArrayBuffer>,
  program: "xz" | "zstd",
): Promise<Uint8Array<ArrayBuffer>> {
  const child = new Deno.Command(program, {
    args: ["-2", "--stdout"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const output = child.output();
  await new Blob([bytes]).stream().pipeTo(child.stdin);
  const { success, stdout } = await output;
  if (!success) throw new Error(`Cannot compress with ${program}`);
  return stdout;
}

/** Paths of narinfos that do not exist. */
export function absentPaths({ count, seed }: NarinfoSet): readonly string[] {
  return Array.from({ length: count }, (_, at) => {
    const { storePathHash } = makeStoreObject({ name: `nobody-has-${at}`, seed });
    return `/${storePathHash}.narinfo`;
  });
}
