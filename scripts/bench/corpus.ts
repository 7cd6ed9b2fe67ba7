import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import { formatSha256, type NarHash, parseFileHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { formatNixCacheInfo } from "../../src/nix/nix_cache_info.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { DIALECTS, narinfoText } from "../../tests/support/dialects.ts";
import { makeStoreObject, type StoreObject } from "../../tests/support/store_object.ts";

/** A store object whose narinfo and NAR are in the upstream's directory. */
export interface Published {
  readonly storePath: string;
  /** Path of its narinfo below a cache's URL. */
  readonly narinfoPath: string;
  readonly narHash: NarHash;
  readonly narSize: number;
}

/** Sets of different seeds have nothing in common. */
export interface CorpusSet {
  readonly count: number;
  readonly seed: number;
}

export type RealCompression = "xz" | "zstd";

/** Number of the median path in nixpkgs, itself included. */
const REFERENCES_COUNT = 6;

/** A signed binary cache of files, as `nix copy --to 'file:///…?compression=none'` makes it. */
export class Corpus {
  readonly folder: string;
  /** Several measures and servers want the same set. */
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
  putNarinfos({ count, seed }: CorpusSet): readonly Published[] {
    return this.#once(`narinfos ${count} ${seed}`, () => {
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
      return objects.map((object) => this.#put(object));
    });
  }

  /** Objects with NARs of random bytes, whose compression gains nothing. */
  putNars({ count, seed }: CorpusSet, bytes: number): readonly Published[] {
    return this.#once(
      `nars ${count} ${seed} ${bytes}`,
      () =>
        Array.from({ length: count }, (_, at) => {
          const name = `file-of-${bytes}-bytes`;
          return this.#put(makeStoreObject({ name, size: bytes, seed: seed * 1_000 + at }));
        }),
    );
  }

  /** Objects made of the program that runs this, compressed. Takes seconds for each. */
  putRealNars(
    { count, seed }: CorpusSet,
    bytes: number,
    compression: RealCompression,
  ): readonly Published[] {
    return this.#once(
      `programs ${count} ${seed} ${bytes} ${compression}`,
      () =>
        Array.from({ length: count }, (_, at) => {
          const file = Deno.readFileSync(Deno.execPath()).slice(0, bytes);
          // Those of other numbers have other hashes.
          file.set(new TextEncoder().encode(`${seed} ${at} `));
          const name = `program-of-${bytes}-bytes-in-${compression}`;
          return this.#put(makeStoreObject({ name, tree: { file }, seed }), compression);
        }),
    );
  }

  #once(set: string, make: () => readonly Published[]): readonly Published[] {
    const published = this.#sets.get(set) ?? make();
    this.#sets.set(set, published);
    return published;
  }

  #put(object: StoreObject, compression: RealCompression | "none" = "none"): Published {
    const { storePath, storePathHash, narHash, narSize, nar } = object;
    const bytes = compression === "none" ? nar : this.#compressed(nar, compression);
    const digest = sha256FromDigest(createHash("sha256").update(bytes).digest());
    const file = { compression, bytes, fileHash: parseFileHash(formatSha256(digest)) };
    const row = compression === "none" ? DIALECTS.directory : DIALECTS.nixos;
    const narinfoPath = `/${storePathHash}.narinfo`;
    Deno.writeFileSync(`${this.folder}/${row.narUrl(object, file)}`, bytes);
    const text = narinfoText({ row, file, object, key: this.#key });
    Deno.writeTextFileSync(this.folder + narinfoPath, text);
    return { storePath, narinfoPath, narHash, narSize };
  }

  /** By the program of that name at level 2, which is fast. */
  #compressed(nar: Bytes, program: RealCompression): Bytes {
    const path = `${this.folder}/nar-to-compress`;
    Deno.writeFileSync(path, nar);
    const args = ["-2", "--stdout", path];
    const { success, stdout } = new Deno.Command(program, { args }).outputSync();
    if (!success) throw new Error(`Cannot compress with ${program}`);
    return stdout;
  }
}

/** Paths of narinfos that do not exist. */
export function absentPaths({ count, seed }: CorpusSet): readonly string[] {
  return Array.from({ length: count }, (_, at) => {
    const { storePathHash } = makeStoreObject({ name: `nobody-has-${at}`, seed });
    return `/${storePathHash}.narinfo`;
  });
}
