import { createHash } from "node:crypto";
import pLimit from "p-limit";
import type { Bytes } from "../../src/base/bytes.ts";
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
import { contentOf, KINDS, realContent } from "./real_content.ts";

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

export type RealCompression = "xz" | "zstd";

/** A real NAR: its content, and the compression of an upstream. */
interface RealNar {
  readonly name: string;
  readonly content: Bytes;
  readonly seed: number;
  readonly compression: RealCompression;
}

/** Number of the median path in nixpkgs, itself included. */
const REFERENCES_COUNT = 6;

/** The NARs of a backlog, 54 MB in sum: from 64 KiB to 11 MB, each a quarter larger. */
const BACKLOG_COUNT = 24;
const SMALLEST_BYTES = 65_536;
const SIZE_STEP = 1.25;

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
  async putRealNars(
    { count, seed, bytes }: NarSet,
    compression: RealCompression,
  ): Promise<readonly Published[]> {
    const name = `programs-of-${bytes}-bytes-in-${compression}`;
    return await this.#onceReal(`${name} ${count} ${seed}`, () => {
      const content = realContent(bytes);
      return Array.from({ length: count }, (_, at) => {
        return { name, content, compression, seed: seed * 1_000 + at };
      });
    });
  }

  /** Objects of many sizes: libraries, programs, headers and sources, half in xz, half in zstd. */
  async putBacklog(seed: number): Promise<readonly Published[]> {
    return await this.#onceReal(`backlog ${seed}`, () => {
      return Array.from({ length: BACKLOG_COUNT }, (_, at): RealNar => {
        // Sizes and kinds come in no order.
        const bytes = Math.round(SMALLEST_BYTES * SIZE_STEP ** (at * 7 % BACKLOG_COUNT));
        const kind = KINDS[at % KINDS.length] ?? "libraries";
        const compression = (at >> 2) % 2 === 0 ? "xz" : "zstd";
        const content = contentOf(kind, bytes);
        return { name: `${kind}-${at}`, content, compression, seed: seed * 1_000 + at };
      });
    });
  }

  async #onceReal(set: string, make: () => readonly RealNar[]): Promise<readonly Published[]> {
    const known = this.#sets.get(set);
    if (known !== undefined) return known;
    const side = pLimit(navigator.hardwareConcurrency);
    const published = await side.map(make(), (nar) => this.#putRealNar(nar));
    this.#sets.set(set, published);
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

  async #putRealNar({ name, content, seed, compression }: RealNar): Promise<Published> {
    const file = new Uint8Array(content);
    // Those of other numbers have other hashes.
    file.set(new TextEncoder().encode(`${seed} `));
    const object = makeStoreObject({ name, tree: { file }, seed });
    const packed = await compressed(object.nar, compression);
    const digest = sha256FromDigest(createHash("sha256").update(packed).digest());
    const fileHash = parseFileHash(formatSha256(digest));
    const narFile = { compression, bytes: packed, fileHash } as const;
    Deno.writeFileSync(`${this.folder}/${DIALECTS.nixos.narUrl(object, narFile)}`, packed);
    return this.#put(object, { row: DIALECTS.nixos, file: narFile });
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

/** Compressed bytes, by the program of that name at level 2, which is fast. */
async function compressed(
  bytes: Bytes,
  program: RealCompression,
): Promise<Bytes> {
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
