import { compressionOf, type NarName } from "../../nix/nar_name.ts";
import type { FileHash, NarHash, Sha256 } from "../../nix/hash.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { KeptNar, NarinfoRow, NarRecord, NarSource, PinRoot } from "../metadata_store.ts";
import type { PendingFile, Stock } from "../space_keeper.ts";

// What this program wrote was checked before it was written, so rows are read by assertion.

export interface NarinfoColumns {
  readonly body: string;
  readonly trusted: number;
  readonly own_public_key: string | null;
  readonly own_signature: string | null;
  readonly name: string;
}

export function readNarinfoRow(
  storePathHash: StorePathHash,
  columns: NarinfoColumns,
): NarinfoRow {
  const { own_public_key: publicKey, own_signature: text } = columns;
  return {
    storePathHash,
    body: columns.body,
    narName: columns.name as NarName,
    trusted: columns.trusted === 1,
    ...(publicKey !== null && text !== null ? { ownSignature: { publicKey, text } } : {}),
  };
}

export interface NarColumns {
  readonly id: number;
  readonly name: string;
  readonly nar_hash: string;
  readonly nar_size: number;
  readonly file_hash: string | null;
  readonly file_size: number | null;
  readonly kept_hash: string | null;
  readonly kept_size: number | null;
}

export function readNarRecord(columns: NarColumns): NarRecord {
  const name = columns.name as NarName;
  const { file_hash, file_size, kept_hash, kept_size } = columns;
  return {
    name,
    compression: compressionOf(name),
    narHash: columns.nar_hash as NarHash,
    narSize: columns.nar_size,
    ...(file_hash !== null ? { fileHash: file_hash as FileHash } : {}),
    ...(file_size !== null ? { fileSize: file_size } : {}),
    ...(kept_hash !== null && kept_size !== null
      ? { kept: { fileHash: kept_hash as Sha256, fileSize: kept_size } }
      : {}),
  };
}

export interface PinColumns {
  readonly hash: string;
  readonly pinned_at_ms: number;
}

export function readPin(columns: PinColumns): PinRoot {
  return { storePathHash: columns.hash as StorePathHash, pinnedAtMs: columns.pinned_at_ms };
}

export function readSource(columns: { upstream: string; location: string }): NarSource {
  return { upstream: columns.upstream, location: columns.location };
}

export interface StockColumns {
  readonly kept_bytes: number;
  readonly kept_files: number;
  readonly pending_bytes: number;
  readonly protected_bytes: number;
}

export function readStock(columns: StockColumns): Stock {
  return {
    keptBytes: columns.kept_bytes,
    keptFiles: columns.kept_files,
    pendingBytes: columns.pending_bytes,
    protectedBytes: columns.protected_bytes,
  };
}

export interface PendingFileColumns {
  readonly name: string;
  readonly owner: string;
  readonly size: number;
}

export function readPendingFile({ name, owner, size }: PendingFileColumns): PendingFile {
  return { narName: name as NarName, owner, fileSize: size };
}

export interface KeptNarColumns {
  readonly name: string;
  readonly kept_hash: string;
  readonly kept_size: number;
}

export function readKeptNar({ name, kept_hash, kept_size }: KeptNarColumns): KeptNar {
  return { name: name as NarName, fileHash: kept_hash as Sha256, fileSize: kept_size };
}
