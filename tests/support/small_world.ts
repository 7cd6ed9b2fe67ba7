import { createHash } from "node:crypto";
import fc from "fast-check";
import type { Bytes } from "../../src/base/bytes.ts";
import { type FileHash, type NarHash, sha256FromDigest } from "../../src/nix/hash.ts";
import type { Narinfo } from "../../src/nix/narinfo.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { type NarName, narName } from "../../src/nix/nar_name.ts";
import { STORE_DIR, type StorePathHash } from "../../src/nix/store_path.ts";
import { hashOfNode } from "./stored_graph.ts";
import { incompressible } from "./store_object.ts";

/** A NAR file that the upstream has. Nothing decompresses it: a test's verifier knows it. */
export interface WorldNar {
  readonly name: NarName;
  readonly bytes: Bytes;
  readonly digest: Uint8Array;
  readonly narDigest: Uint8Array;
  /** False where neither narinfo nor upstream tells the size. */
  readonly isSizeTold: boolean;
}

/** Store paths are numbers; references may name some that no upstream has. */
export interface WorldPath {
  readonly references: readonly number[];
  readonly nar: number;
}

const PATHS_MIN = 6;
const PATHS_MAX = 12;

/** References to paths that nobody has. */
const MISSING = 2;

const NARS: readonly WorldNar[] = [40, 12, 25, 60, 18, 33, 12, 48, 20, 30].map(makeNar);

/** Graphs of a dozen paths with shared NARs, cycles, self-references, and missing references. */
export const smallWorld: fc.Arbitrary<SmallWorld> = fc
  .array(
    fc.record({
      references: fc.array(fc.nat({ max: PATHS_MAX + MISSING - 1 }), { maxLength: 3 }),
      nar: fc.nat({ max: NARS.length - 1 }),
    }),
    { minLength: PATHS_MIN, maxLength: PATHS_MAX },
  )
  .map((paths) => new SmallWorld(paths));

/** The store objects of the upstream. */
export class SmallWorld {
  readonly paths: readonly WorldPath[];
  readonly #narinfos = new Map<StorePathHash, Narinfo>();
  readonly #numbers = new Map<StorePathHash, number>();

  constructor(paths: readonly WorldPath[]) {
    this.paths = paths;
    for (const number of paths.keys()) {
      const storePathHash = hashOfNode(number);
      this.#numbers.set(storePathHash, number);
      this.#narinfos.set(storePathHash, parseNarinfo(this.#narinfoText(number)));
    }
  }

  narinfo(storePathHash: StorePathHash): Narinfo | undefined {
    return this.#narinfos.get(storePathHash);
  }

  numberOf(storePathHash: StorePathHash): number {
    return this.#numbers.get(storePathHash) ?? -1;
  }

  narOf(path: number): WorldNar {
    const nar = NARS[this.paths[path]?.nar ?? -1];
    if (nar === undefined) throw new Error(`Cannot find NAR of path ${path}`);
    return nar;
  }

  /** Everything that `roots` reach over the references of `stored` paths; roots included. */
  closure(roots: Iterable<number>, stored: { has(path: number): boolean }): ReadonlySet<number> {
    const reached = new Set(roots);
    for (const path of reached) {
      if (!stored.has(path)) continue;
      for (const reference of this.paths[path]?.references ?? []) reached.add(reference);
    }
    return reached;
  }

  toString(): string {
    return this.paths
      .map(({ references, nar }, path) => `${path}[nar ${nar}]→${references.join(",") || "·"}`)
      .join(" ");
  }

  #narinfoText(path: number): string {
    const { name, bytes, digest, narDigest, isSizeTold } = this.narOf(path);
    const references = this.paths[path]?.references ?? [];
    return [
      `StorePath: ${STORE_DIR}/${baseNameOf(path)}`,
      `URL: nar/${name}`,
      `Compression: ${name.endsWith(".xz") ? "xz" : "none"}`,
      `FileHash: sha256:${sha256FromDigest(digest)}`,
      ...(isSizeTold ? [`FileSize: ${bytes.length}`] : []),
      `NarHash: sha256:${sha256FromDigest(narDigest)}`,
      `NarSize: ${bytes.length}`,
      `References: ${[...new Set(references)].map(baseNameOf).join(" ")}`,
      "",
    ].join("\n");
  }
}

/** The NAR file of this name. */
export function narNamed(name: NarName): WorldNar {
  const nar = NARS.find((one) => one.name === name);
  if (nar === undefined) throw new Error(`Cannot find NAR ${name}`);
  return nar;
}

function baseNameOf(path: number): string {
  return `${hashOfNode(path)}-path-${path}`;
}

/** Uncompressed, compressed, and compressed without a size, in turns. */
function makeNar(kilobytes: number, index: number): WorldNar {
  const bytes = incompressible(kilobytes * 1_000, index + 1);
  const digest = createHash("sha256").update(bytes).digest();
  const compression = index % 3 === 0 ? "none" : "xz";
  const narDigest = compression === "none"
    ? digest
    : createHash("sha256").update("unpacked").update(bytes).digest();
  return {
    name: narName(sha256FromDigest(digest) as FileHash | NarHash, compression),
    bytes,
    digest,
    narDigest,
    isSizeTold: index % 3 !== 2,
  };
}
