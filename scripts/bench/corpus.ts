import { formatSha256, type NarHash, parseFileHash } from "../../src/nix/hash.ts";
import { formatNixCacheInfo } from "../../src/nix/nix_cache_info.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { DIALECTS, narinfoText } from "../../tests/support/dialects.ts";
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

  /** Narinfos of objects without NARs. */
  putNarinfos(set: NarinfoSet): readonly Published[] {
    return this.#once(`narinfos ${JSON.stringify(set)}`, () => this.#makeNarinfos(set));
  }

  /** Objects with incompressible NARs, like those of `nar.xz` files. */
  putNars(set: NarSet): readonly Published[] {
    return this.#once(`nars ${JSON.stringify(set)}`, () => this.#makeNars(set));
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
    return objects.map((object) => this.#put(object));
  }

  #makeNars({ count, seed, bytes }: NarSet): readonly Published[] {
    return Array.from({ length: count }, (_, at) => {
      const name = `file-of-${bytes}-bytes`;
      const object = makeStoreObject({ name, size: bytes, seed: seed * 1_000 + at });
      Deno.writeFileSync(`${this.folder}/nar/${object.narHash}.nar`, object.nar);
      return this.#put(object);
    });
  }

  #put(object: StoreObject): Published {
    const { storePath, storePathHash, nar, narHash, narSize } = object;
    // Not compressed, so the file is the NAR.
    const fileHash = parseFileHash(formatSha256(narHash));
    const file = { compression: "none" as const, bytes: nar, fileHash };
    const text = narinfoText({ row: DIALECTS.directory, object, file, key: this.#key });
    const narinfoPath = `/${storePathHash}.narinfo`;
    Deno.writeTextFileSync(this.folder + narinfoPath, text);
    return { storePath, narinfoPath, narHash, narSize };
  }
}

/** Paths of narinfos that do not exist. */
export function absentPaths({ count, seed }: NarinfoSet): readonly string[] {
  return Array.from({ length: count }, (_, at) => {
    const { storePathHash } = makeStoreObject({ name: `nobody-has-${at}`, seed });
    return `/${storePathHash}.narinfo`;
  });
}
