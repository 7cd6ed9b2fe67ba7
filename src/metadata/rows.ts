import { compressionOf, type NarName } from "../nix/nar_name.ts";
import type { FileHash, NarHash, Sha256 } from "../nix/hash.ts";
import { type Seal, storedName } from "../nix/stored_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { KeptFile, KeptNar, NarinfoRow, NarRecord, PinRoot } from "./metadata_store.ts";
import type { PinLook } from "./pin_look.ts";
import type { PendingFile } from "./space_keeper.ts";

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
