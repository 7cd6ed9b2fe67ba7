import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import { type NarHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { encodeNix32 } from "../../src/nix/nix32.ts";
import {
  type BaseName,
  hashOfBaseName,
  parseBaseName,
  STORE_DIR,
  type StorePathHash,
} from "../../src/nix/store_path.ts";
import { type NarTree, writeNar } from "./nar.ts";

/** A store object in memory, with the facts for its narinfo. */
export interface StoreObject {
  readonly baseName: BaseName;
  readonly storePath: string;
  readonly storePathHash: StorePathHash;
  readonly nar: Bytes;
  readonly narHash: NarHash;
  readonly narSize: number;
  /** Sorted, as Nix writes them. */
  readonly references: readonly BaseName[];
  readonly deriver?: BaseName;
}

export interface StoreObjectOptions {
  readonly name: string;
  /** Default: one small text file that differs from name to name. */
  readonly tree?: NarTree;
  /** In place of `tree`: one file of this many bytes that no compressor makes smaller. */
  readonly size?: number;
  readonly references?: readonly Pick<StoreObject, "baseName">[];
  readonly selfReference?: boolean;
  readonly deriver?: boolean;
  /** Objects of one name differ by it, in store path and content. */
  readonly seed?: number;
}

const STORE_PATH_HASH_BYTES = 20;

/** The same options always give the same object. */
export function makeStoreObject(options: StoreObjectOptions): StoreObject {
  const { name, seed = 0, references = [] } = options;
  const baseName = baseNameOf(name, seed);
  const nar = writeNar(treeOf(options, baseName));
  const referenced = references.map((object) => object.baseName);
  if (options.selfReference) referenced.push(baseName);
  return {
    baseName,
    storePath: `${STORE_DIR}/${baseName}`,
    storePathHash: hashOfBaseName(baseName),
    nar,
    narHash: sha256FromDigest(createHash("sha256").update(nar).digest()) as NarHash,
    narSize: nar.length,
    references: [...new Set(referenced)].sort(),
    ...(options.deriver && { deriver: baseNameOf(`${name}.drv`, seed) }),
  };
}

/**
 * Objects in which each one refers to the one before it: `chain(3)` is c → b → a, listed
 * from the leaf up. The last one's closure is all of them.
 */
export function chain(length: number, seed = 0): readonly StoreObject[] {
  const objects: StoreObject[] = [];
  for (let at = 0; at < length; at++) {
    const references = objects.slice(-1);
    objects.push(makeStoreObject({ name: `link-${at}`, references, seed }));
  }
  return objects;
}

/** Bytes that look random to a compressor and are the same for the same seed. */
export function incompressible(byteLength: number, seed = 0): Bytes {
  const words = new Uint32Array(Math.ceil(byteLength / 4));
  // Xorshift (Marsaglia): it must not start from 0. 300 MB take about a second.
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x2545f491) | 0 || 1;
  for (let at = 0; at < words.length; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[at] = state;
  }
  return new Uint8Array(words.buffer, 0, byteLength);
}

function treeOf({ tree, size, name, seed = 0 }: StoreObjectOptions, baseName: BaseName): NarTree {
  if (size !== undefined) return { file: incompressible(size, seed) };
  return tree ?? { dir: { [name]: { file: `I am ${baseName}\n`.repeat(50) } } };
}

function baseNameOf(name: string, seed: number): BaseName {
  const digest = createHash("sha256").update(`${seed}:${name}`).digest();
  return parseBaseName(`${encodeNix32(digest.subarray(0, STORE_PATH_HASH_BYTES))}-${name}`);
}
