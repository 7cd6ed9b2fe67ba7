import { compressionOf, type NarName } from "../../nix/nar_name.ts";
import type { FileHash, NarHash, Sha256 } from "../../nix/hash.ts";
import { type Seal, storedName } from "../../nix/stored_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type {
  KeptFile,
  KeptNar,
  NarinfoRow,
  NarRecord,
  NarSource,
  PinRoot,
} from "../metadata_store.ts";
import type { PendingFile, Stock } from "../space_keeper.ts";

// Rows are cast, not parsed: this program checked them before it wrote them.

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

export interface KeptColumns {
  readonly kept_hash: string | null;
  readonly kept_size: number | null;
  readonly kept_id: string;
  readonly kept_seal: string | null;
}

function readKept(name: NarName, columns: KeptColumns): { readonly kept?: KeptFile } {
  const { kept_hash, kept_size, kept_id, kept_seal } = columns;
  if (kept_hash === null || kept_size === null) return {};
  const seal = kept_seal === null ? {} : { seal: kept_seal as Seal };
  const at = storedName(name, kept_id);
  return { kept: { at, ...seal, fileHash: kept_hash as Sha256, fileSize: kept_size } };
}

export interface NarColumns extends KeptColumns {
  readonly id: number;
  readonly name: string;
  readonly nar_hash: string;
  readonly nar_size: number;
  readonly file_hash: string | null;
  readonly file_size: number | null;
}

export function readNarRecord(columns: NarColumns): NarRecord {
  const name = columns.name as NarName;
  const { file_hash, file_size } = columns;
  return {
    name,
    compression: compressionOf(name),
    narHash: columns.nar_hash as NarHash,
    narSize: columns.nar_size,
    ...(file_hash !== null ? { fileHash: file_hash as FileHash } : {}),
    ...(file_size !== null ? { fileSize: file_size } : {}),
    ...readKept(name, columns),
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
  readonly reserved_bytes: number;
}

export function readStock(columns: StockColumns): Stock {
  return {
    keptBytes: columns.kept_bytes,
    keptFiles: columns.kept_files,
    pendingBytes: columns.pending_bytes,
    protectedBytes: columns.protected_bytes,
    reservedBytes: columns.reserved_bytes,
  };
}

export interface PendingFileColumns {
  readonly name: string;
  readonly publish_id: string;
  readonly owner: string;
  readonly size: number;
}

export function readPendingFile(columns: PendingFileColumns): PendingFile {
  const { name, publish_id, owner, size } = columns;
  return { at: storedName(name as NarName, publish_id), owner, fileSize: size };
}

export function readKeptNar(columns: KeptColumns & { readonly name: string }): readonly KeptNar[] {
  const name = columns.name as NarName;
  const { kept } = readKept(name, columns);
  return kept === undefined ? [] : [{ name, ...kept }];
}
