import type { DocumentPath } from "../nix/document_name.ts";
import { compressionOf, type NarName } from "../nix/nar_name.ts";
import type { FileHash, NarHash, Sha256 } from "../nix/hash.ts";
import { type Seal, storedName } from "../nix/stored_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type {
  KeptFile,
  KeptNar,
  NarinfoRow,
  NarRecord,
  NarSource,
  PathTimes,
  PinRoot,
  UsedNar,
} from "./metadata_store.ts";
import type { DocumentRow } from "./document_keeper.ts";
import type { PinLook } from "./pin_look.ts";
import type { SignedPath } from "./signed_path_keeper.ts";
import type { PendingFile, Stock } from "./space_keeper.ts";

// Rows are cast, not parsed: this program checked them before it wrote them. SQLite has 0 and 1 for
// false and true.

export interface NarinfoColumns {
  readonly body: string;
  readonly trusted: number | boolean;
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
    trusted: Boolean(columns.trusted),
    ...(publicKey !== null && text !== null ? { ownSignature: { publicKey, text } } : {}),
  };
}

export interface PathTimesColumns {
  readonly used_at_ms: number | null;
  readonly evicted_at_ms: number | null;
}

export function readPathTimes({ used_at_ms, evicted_at_ms }: PathTimesColumns): PathTimes {
  return {
    ...(used_at_ms ? { usedAtMs: used_at_ms } : {}),
    ...(evicted_at_ms === null ? {} : { evictedAtMs: evicted_at_ms }),
  };
}

export interface SignedPathColumns {
  readonly digest: string;
  readonly uploaded: number | boolean;
}

export function readSignedPath({ digest, uploaded }: SignedPathColumns): SignedPath {
  return { digest: digest as Sha256, isUploaded: Boolean(uploaded) };
}

export interface KeptColumns {
  readonly kept_hash: string | null;
  readonly kept_size: number | null;
  readonly kept_id: string;
  readonly kept_seal: string | null;
  readonly kept_at_ms: number | null;
  readonly kept_form: string | null;
}

function readKept(name: NarName, columns: KeptColumns): { readonly kept?: KeptFile } {
  const { kept_hash, kept_size, kept_id, kept_seal, kept_at_ms, kept_form } = columns;
  if (kept_hash === null || kept_size === null) return {};
  const seal = kept_seal === null ? {} : { seal: kept_seal as Seal };
  const at = storedName(name, kept_id);
  const time = kept_at_ms === null ? {} : { keptAtMs: kept_at_ms };
  const form = kept_form === null ? {} : { form: kept_form as "zstd" };
  const file = { fileHash: kept_hash as Sha256, fileSize: kept_size };
  return { kept: { at, ...seal, ...time, ...form, ...file } };
}

export interface NarColumns extends KeptColumns {
  readonly id: number;
  readonly name: string;
  readonly nar_hash: string;
  readonly nar_size: number;
  readonly file_hash: string | null;
  readonly file_size: number | null;
  readonly seen_at_ms: number | null;
  readonly broken_at_ms: number | null;
}

export function readNarRecord(columns: NarColumns): NarRecord {
  const name = columns.name as NarName;
  const { file_hash, file_size, seen_at_ms, broken_at_ms } = columns;
  return {
    name,
    compression: compressionOf(name),
    narHash: columns.nar_hash as NarHash,
    narSize: columns.nar_size,
    ...(file_hash !== null ? { fileHash: file_hash as FileHash } : {}),
    ...(file_size !== null ? { fileSize: file_size } : {}),
    ...(seen_at_ms !== null ? { seenAtMs: seen_at_ms } : {}),
    ...(broken_at_ms !== null ? { brokenAtMs: broken_at_ms } : {}),
    ...readKept(name, columns),
  };
}

export interface UsedNarColumns {
  readonly id: number;
  readonly name: string;
  readonly used_at_ms: number;
  readonly kept_form: string | null;
  readonly kept_size: number;
  readonly broken_at_ms: number | null;
}

export function readUsedNar(columns: UsedNarColumns): UsedNar {
  const { id, name, used_at_ms: usedAtMs, kept_form, kept_size, broken_at_ms } = columns;
  return {
    narName: name as NarName,
    usedAtMs,
    fileSize: kept_size,
    ...(kept_form !== null ? { form: kept_form as "zstd" } : {}),
    ...(broken_at_ms !== null ? { brokenAtMs: broken_at_ms } : {}),
    cursor: { usedAtMs, id },
  };
}

export interface PinColumns {
  readonly hash: string;
  readonly pinned_at_ms: number;
  readonly by_hand: number | boolean;
  /** Apart by blanks, which no name has. */
  readonly names: string | null;
  readonly keep_complete: number | boolean;
  readonly look: string | null;
}

export function readPin(columns: PinColumns): PinRoot {
  const { hash, pinned_at_ms, by_hand, names, keep_complete, look } = columns;
  return {
    storePathHash: hash as StorePathHash,
    pinnedAtMs: pinned_at_ms,
    ...(names === null ? {} : { names: names.split(" ").sort() }),
    ...(by_hand ? {} : { rolls: true }),
    ...(keep_complete ? { keepComplete: true } : {}),
    ...(look === null ? {} : { look: JSON.parse(look) as PinLook }),
  };
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

export interface DocumentColumns {
  readonly id: number;
  readonly path: string;
  readonly upstream: string;
  readonly content_type: string;
  readonly content_encoding: string | null;
  readonly tag: string;
  readonly size: number;
  readonly may_change: number | boolean;
  readonly checked_at_ms: number;
  readonly nar_name: string | null;
}

export function readDocument(columns: DocumentColumns): DocumentRow {
  const { content_encoding: encoding, nar_name: narName } = columns;
  return {
    id: columns.id,
    path: columns.path as DocumentPath,
    upstream: columns.upstream,
    type: columns.content_type,
    ...(encoding === null ? {} : { encoding }),
    tag: columns.tag,
    bodyBytes: columns.size,
    mayChange: Boolean(columns.may_change),
    checkedAtMs: columns.checked_at_ms,
    ...(narName === null ? {} : { narName: narName as NarName }),
  };
}
