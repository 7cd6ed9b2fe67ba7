import { createHash } from "node:crypto";
import type { Change } from "../../src/metadata/metadata_store.ts";
import type { NarHash, Sha256 } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { encodeNix32 } from "../../src/nix/nix32.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { fileOf, keep } from "./metadata_rows.ts";

/** A store path of a made graph; others are named by their number. */
export interface GraphNode {
  readonly references: readonly number[];
  /** Those of one number share a NAR file; absent: the narinfo is not stored. */
  readonly nar?: number;
  /** Default true. */
  readonly kept?: boolean;
}

const STORE_PATH_HASH_BYTES = 20;

export function hashOfNode(node: number): StorePathHash {
  return encodeNix32(digest(`path ${node}`).subarray(0, STORE_PATH_HASH_BYTES)) as StorePathHash;
}

/** So that a sum of them tells which they were. */
export function narBytesOf(nar: number): number {
  return 1_000 + nar;
}

/** The changes after which a store holds the graph. */
export function changesOf(nodes: readonly GraphNode[]): readonly Change[] {
  return nodes.flatMap(({ references, nar, kept = true }, node): readonly Change[] => {
    if (nar === undefined) return [];
    const fileHash = encodeNix32(digest(`nar ${nar}`)) as Sha256;
    const name = narName(fileHash, "none");
    const storePathHash = hashOfNode(node);
    return [
      {
        kind: "put-narinfo",
        row: {
          storePathHash,
          body: `StorePath: /nix/store/${storePathHash}-node-${node}\n`,
          narName: name,
          trusted: true,
        },
        references: [...new Set(references)].map(hashOfNode),
        nar: { name, compression: "none", narHash: fileHash as string as NarHash, narSize: 1 },
        sources: [],
        atMs: 0,
      },
      ...kept ? keep(fileOf(name, narBytesOf(nar)), 0) : [],
    ];
  });
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
