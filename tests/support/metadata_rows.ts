import { createHash } from "node:crypto";
import type {
  Change,
  ChangeOf,
  KeptFile,
  NarRow,
  NarSource,
} from "../../src/metadata/metadata_store.ts";
import { type FileHash, type NarHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { type NarName, narName } from "../../src/nix/nar_name.ts";
import { newStoredName } from "../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";

export const source: NarSource = {
  upstream: "https://cache.example.org",
  location: "nar/x.nar.xz?a=b&c='d'",
};

/** Stores a narinfo with a NAR of its own. */
export function put(
  storePathHash: StorePathHash,
  references: readonly StorePathHash[],
  atMs = 1_000,
) {
  const nar = narOf(storePathHash);
  const row = rowOf(storePathHash, nar);
  return {
    kind: "put-narinfo",
    row,
    references,
    nar,
    sources: [source],
    atMs,
  } as const satisfies Change;
}

/** Remembers the signed facts of an uploaded path. */
export function putSigned(
  storePathHash: StorePathHash,
  more: Partial<ChangeOf<"put-signed">> = {},
): ChangeOf<"put-signed"> {
  const digest = sha(`facts ${storePathHash}`);
  return { kind: "put-signed", storePathHash, digest, isUploaded: true, countMax: 100, ...more };
}

/** An object of a NAR that no other is. */
export function fileOf(narName: NarName, fileSize = 100): KeptFile {
  return { at: newStoredName(narName), fileHash: sha("kept"), fileSize, keptAtMs: 12_345 };
}

/** Publishes and keeps an object. */
export function keep(file: KeptFile, atMs = 1, owner = "we"): readonly Change[] {
  return [
    { kind: "nar-publishing", at: file.at, owner },
    { kind: "nar-kept", file, owner, atMs },
  ];
}

export function rowOf(storePathHash: StorePathHash, nar: NarRow) {
  return {
    storePathHash,
    body: `StorePath: /nix/store/${storePathHash}-näme-"'\nURL: nar/${nar.name}\n`,
    narName: nar.name,
    trusted: true,
    ownSignature: { publicKey: "larder:AAAA", text: "larder:c2ln" },
  };
}

/** A NAR file that nothing else is; its facts depend on `seed` alone. */
export function narOf(seed: string): NarRow {
  return {
    name: narName(sha(seed), "xz"),
    compression: "xz",
    narHash: sha(`nar ${seed}`) as NarHash,
    narSize: 226_560,
    fileHash: sha(seed) as FileHash,
    fileSize: 50_308,
  };
}

export function sha(seed: string) {
  return sha256FromDigest(createHash("sha256").update(seed).digest());
}

export function hash(seed: string): StorePathHash {
  return sha(seed).slice(0, 32) as StorePathHash;
}
