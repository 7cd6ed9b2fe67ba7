import { Failure } from "../base/failure.ts";
import type { MemberId } from "../base/member_id.ts";
import type { StorageId } from "../base/storage_id.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { FileHash, NarHash, Sha256 } from "../nix/hash.ts";
import { compressionOf, type NarName, type NarStem } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { type Seal, storedName } from "../nix/stored_name.ts";
import type { HistoryRow, PullRow, PullSummary } from "./history_keeper.ts";
import {
  type DocumentRow,
  type KeptFile,
  type KeptNar,
  type ListedDocument,
  type ListedFormerName,
  type ListedLooseNar,
  type ListedNarinfo,
  type ListedSignedPath,
  type NamedPin,
  type NarinfoRow,
  type NarRecord,
  type NarSource,
  NEWEST_USE,
  type PathTimes,
  type PinLook,
  type PinRoot,
  type SignedPath,
  type SignedPathCounts,
  type UsedNar,
} from "./metadata_store.ts";
import type { ColdEntry, PendingFile, Stock } from "./space_keeper.ts";

/** A pin root with the names that hold it. */
const ROOT = `SELECT r.hash, r.pinned_at_ms, r.by_hand, r.keep_complete, r.look,
    (SELECT string_agg(n.name, ' ') FROM pin_name n WHERE n.hash = r.hash) AS names
  FROM pin_root r`;

function usedNars(isProtected: "true" | "false"): string {
  return `SELECT u.path_id AS id, u.used_at_ms AS "usedAtMs", n.name AS "narName",
      n.kept_form AS form, n.kept_size AS "fileSize", n.broken_at_ms AS "brokenAtMs"
    FROM narinfo_use u JOIN narinfo i ON i.path_id = u.path_id JOIN nar n ON n.id = i.nar_id
    WHERE u.protected = ${isProtected} AND u.kept = true AND (u.used_at_ms, u.path_id) < (?1, ?2)
    ORDER BY u.used_at_ms DESC, u.path_id DESC LIMIT ?3`;
}

/** The reads that each back end runs as they are, but for the sign of a parameter. */
export const READS = {
  findNarinfo: `SELECT i.body, i.trusted, i.own_public_key, i.own_signature, n.name
    FROM path p JOIN narinfo i ON i.path_id = p.id JOIN nar n ON n.id = i.nar_id
    WHERE p.hash = ?1`,
  findNar: `SELECT id, name, nar_hash, nar_size, file_hash, file_size, seen_at_ms,
      kept_hash, kept_size, kept_id, kept_seal, kept_at_ms, kept_form, came_at_ms,
      broken_at_ms
    FROM nar WHERE name = ?1`,
  // `~` sorts above every character of a name.
  keptNars: `SELECT name, kept_hash, kept_size, kept_id, kept_seal, kept_at_ms, kept_form,
      came_at_ms
    FROM nar
    WHERE name >= ?1 AND name < ?1 || '~' AND kept_size IS NOT NULL ORDER BY name`,
  // Each part reads its index from the newest on.
  usedNars: `SELECT * FROM (${usedNars("true")}) AS protected
    UNION ALL SELECT * FROM (${usedNars("false")}) AS other
    ORDER BY "usedAtMs" DESC, id DESC LIMIT ?3`,
  sourcesOf: `SELECT s.upstream, s.location FROM nar n JOIN nar_source s ON s.nar_id = n.id
    WHERE n.name = ?1`,
  narinfosOf: `SELECT p.hash FROM nar n JOIN narinfo i ON i.nar_id = n.id
    JOIN path p ON p.id = i.path_id WHERE n.name = ?1 ORDER BY i.path_id`,
  narOfFormerName: `SELECT n.name FROM former_name f JOIN nar n ON n.id = f.nar_id
    WHERE f.stem = ?1`,
  formerNamesOf: `SELECT f.stem FROM nar n JOIN former_name f ON f.nar_id = n.id
    WHERE n.name = ?1 ORDER BY f.stem`,
  // References without their narinfo are not all there yet.
  referencesOf: `SELECT d.hash FROM path p JOIN narinfo i ON i.path_id = p.id
    JOIN reference r ON r.src = p.id JOIN path d ON d.id = r.dst WHERE p.hash = ?1`,
  pathTimes: `SELECT
      (SELECT nullif(u.used_at_ms, 0) FROM path p JOIN narinfo_use u ON u.path_id = p.id
        WHERE p.hash = ?1) AS "usedAtMs",
      (SELECT at_ms FROM evicted_path WHERE hash = ?1 ORDER BY id DESC LIMIT 1) AS "evictedAtMs"`,
  findSigned: `SELECT digest, uploaded AS "isUploaded" FROM signed_path WHERE hash = ?1`,

  findPin: `${ROOT} WHERE r.hash = ?1`,
  pins: `${ROOT} ORDER BY r.id`,
  namedPins: `SELECT name, hash AS "storePathHash", pinned_at_ms AS "pinnedAtMs", keep
    FROM pin_name ORDER BY name, id`,

  findDocument: `SELECT id, path, upstream, content_type AS type, content_encoding AS encoding, tag,
      size AS "bodyBytes", may_change AS "mayChange", checked_at_ms AS "checkedAtMs",
      nar_name AS "narName"
    FROM document WHERE path = ?1`,
  documentPiece: "SELECT bytes FROM document_piece WHERE document_id = ?1 AND number = ?2",
  debuginfoSourcesOf: "SELECT DISTINCT upstream FROM document WHERE nar_name = ?1",

  stock: `SELECT kept_bytes AS "keptBytes", kept_files AS "keptFiles",
      pending_bytes AS "pendingBytes", protected_bytes AS "protectedBytes",
      (SELECT coalesce(sum(reserved_bytes), 0) FROM member WHERE id <> ?1) AS "reservedBytes"
    FROM stock`,

  listNarinfos: `SELECT p.hash AS "storePathHash", u.used_at_ms AS "usedAtMs"
    FROM path p JOIN narinfo_use u ON u.path_id = p.id
    WHERE p.hash > ?1 ORDER BY p.hash LIMIT ?2`,
  listLooseNars: `SELECT n.name AS "narName", l.used_at_ms AS "usedAtMs",
      l.staged_until_ms AS "stagedUntilMs"
    FROM nar n JOIN loose_nar l ON l.nar_id = n.id WHERE n.name > ?1 ORDER BY n.name LIMIT ?2`,
  listSignedPaths: `SELECT hash AS "storePathHash", digest, uploaded AS "isUploaded"
    FROM signed_path WHERE hash > ?1 ORDER BY hash LIMIT ?2`,
  listFormerNames: `SELECT f.stem, n.name AS "narName"
    FROM former_name f JOIN nar n ON n.id = f.nar_id WHERE f.stem > ?1 ORDER BY f.stem LIMIT ?2`,
  listDocuments: `SELECT path, used_at_ms AS "usedAtMs" FROM document
    WHERE path > ?1 ORDER BY path LIMIT ?2`,

  history: `SELECT tier, at_ms AS "atMs", figure, amount FROM history`,
  pulls: `SELECT id, client, summary FROM pull WHERE CAST(?1 AS text) IS NULL OR client = ?1
    ORDER BY number DESC LIMIT ?2`,
  findPull: "SELECT id, client, summary, paths FROM pull WHERE id = ?1",

  storageId: "SELECT id FROM storage_id",
  originalName: "SELECT original FROM copy_mark",
} as const;

/** The reads whose text is that of a back end. */
type OwnRead = "signedCounts" | "documentBytes" | "wrongSums" | "pendingFiles";

export type ReadName = keyof typeof READS | OwnRead;

type Parameter = string | number | null;

/** What every back end reads in the same way. */
export abstract class StoredRows {
  /** The rows of a read. Throws where the database is closed or cannot be read. */
  protected abstract rows<Row>(
    name: ReadName,
    ...values: readonly Parameter[]
  ): readonly Row[] | Promise<readonly Row[]>;

  async findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined> {
    const [row] = await this.rows<NarinfoColumns>("findNarinfo", storePathHash);
    return row && readNarinfoRow(storePathHash, row);
  }

  async findNar(narName: NarName): Promise<NarRecord | undefined> {
    const [row] = await this.rows<NarColumns>("findNar", narName);
    return row && readNarRecord(row);
  }

  async keptNars(prefix: string): Promise<readonly KeptNar[]> {
    const rows = await this.rows<KeptColumns & { readonly name: string }>("keptNars", prefix);
    return rows.flatMap(readKeptNar);
  }

  async usedNars(countMax: number, after = NEWEST_USE): Promise<readonly UsedNar[]> {
    type Columns = Omit<UsedNar, "cursor"> & { readonly id: number };
    const rows = await this.rows<Columns>("usedNars", after.usedAtMs, after.id, countMax);
    return rows.map(({ id, ...row }) => (
      { ...withoutNulls(row), cursor: { usedAtMs: row.usedAtMs, id } }
    ));
  }

  async sourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    return (await this.rows<NarSource>("sourcesOf", narName)).map(copied);
  }

  narinfosOf(narName: NarName): Promise<readonly StorePathHash[]> {
    return this.#hashes("narinfosOf", narName);
  }

  async narOfFormerName(stem: NarStem): Promise<NarName | undefined> {
    const [row] = await this.rows<{ readonly name: NarName }>("narOfFormerName", stem);
    return row?.name;
  }

  async formerNamesOf(narName: NarName): Promise<readonly NarStem[]> {
    const rows = await this.rows<{ readonly stem: NarStem }>("formerNamesOf", narName);
    return rows.map(({ stem }) => stem);
  }

  referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]> {
    return this.#hashes("referencesOf", storePathHash);
  }

  async pathTimes(storePathHash: StorePathHash): Promise<PathTimes> {
    const [row] = await this.rows<PathTimes>("pathTimes", storePathHash);
    return row === undefined ? {} : withoutNulls(row);
  }

  async findSigned(storePathHash: StorePathHash): Promise<SignedPath | undefined> {
    const [row] = await this.rows<SignedPath>("findSigned", storePathHash);
    return row && { ...row, isUploaded: Boolean(row.isUploaded) };
  }

  async signedCounts(): Promise<SignedPathCounts> {
    const [row] = await this.rows<SignedPathCounts>("signedCounts");
    return { uploaded: Number(row?.uploaded), upstream: Number(row?.upstream) };
  }

  async findPin(storePathHash: StorePathHash): Promise<PinRoot | undefined> {
    const [row] = await this.rows<PinColumns>("findPin", storePathHash);
    return row && readPin(row);
  }

  async pins(): Promise<readonly PinRoot[]> {
    return (await this.rows<PinColumns>("pins")).map(readPin);
  }

  async namedPins(): Promise<readonly NamedPin[]> {
    return (await this.rows<NamedPin>("namedPins")).map(copied);
  }

  async findDocument(path: DocumentPath): Promise<DocumentRow | undefined> {
    const [row] = await this.rows<DocumentRow>("findDocument", path);
    return row && { ...withoutNulls(row), mayChange: Boolean(row.mayChange) };
  }

  async documentBytes(): Promise<number> {
    const [row] = await this.rows<{ readonly bytes: number }>("documentBytes");
    return row?.bytes ?? 0;
  }

  async debuginfoSourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    const rows = await this.rows<{ readonly upstream: string }>("debuginfoSourcesOf", narName);
    return rows.map(({ upstream }) => ({ upstream, location: `nar/${narName}` }));
  }

  async stock(except: MemberId = ""): Promise<Stock> {
    const [row] = await this.rows<Stock>("stock", except);
    if (row === undefined) throw new Failure("broken", "Cannot read the stock: no row");
    return copied(row);
  }

  async areSumsRight(): Promise<boolean> {
    return (await this.rows("wrongSums")).length === 0;
  }

  async pendingFiles(): Promise<readonly PendingFile[]> {
    return (await this.rows<PendingFileColumns>("pendingFiles")).map(readPendingFile);
  }

  async listNarinfos(after: string, countMax: number): Promise<readonly ListedNarinfo[]> {
    return (await this.rows<ListedNarinfo>("listNarinfos", after, countMax)).map(copied);
  }

  async listLooseNars(after: string, countMax: number): Promise<readonly ListedLooseNar[]> {
    return (await this.rows<ListedLooseNar>("listLooseNars", after, countMax)).map(copied);
  }

  async listSignedPaths(after: string, countMax: number): Promise<readonly ListedSignedPath[]> {
    const rows = await this.rows<ListedSignedPath>("listSignedPaths", after, countMax);
    return rows.map((row) => ({ ...row, isUploaded: Boolean(row.isUploaded) }));
  }

  async listFormerNames(after: string, countMax: number): Promise<readonly ListedFormerName[]> {
    return (await this.rows<ListedFormerName>("listFormerNames", after, countMax)).map(copied);
  }

  async listDocuments(after: string, countMax: number): Promise<readonly ListedDocument[]> {
    return (await this.rows<ListedDocument>("listDocuments", after, countMax)).map(copied);
  }

  async history(): Promise<readonly HistoryRow[]> {
    const rows = await this.rows<HistoryRow>("history");
    // Thousands, every few seconds: a spread of each takes four times as long.
    return rows.map(({ tier, atMs, figure, amount }) => ({ tier, atMs, figure, amount }));
  }

  async pulls(countMax: number, client?: string): Promise<readonly PullSummary[]> {
    return (await this.rows<PullSummary>("pulls", client ?? null, countMax)).map(copied);
  }

  async findPull(id: string): Promise<PullRow | undefined> {
    const [row] = await this.rows<PullRow>("findPull", id);
    return row && copied(row);
  }

  async storageId(): Promise<StorageId | undefined> {
    const [row] = await this.rows<{ readonly id: StorageId }>("storageId");
    return row?.id;
  }

  async originalName(): Promise<string | undefined> {
    const [row] = await this.rows<{ readonly original: string }>("originalName");
    return row?.original;
  }

  async #hashes(
    name: "narinfosOf" | "referencesOf",
    key: string,
  ): Promise<readonly StorePathHash[]> {
    return (await this.rows<{ readonly hash: StorePathHash }>(name, key)).map(({ hash }) => hash);
  }
}

/** Rows of SQLite have no prototype. */
function copied<Row extends object>(row: Row): Row {
  return { ...row };
}

/** An absent value is a NULL in the row. */
function withoutNulls<Row extends object>(row: Row): Row {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Row;
}

// Rows are cast, not parsed: this program checked them before it wrote them. SQLite has 0 and 1 for
// false and true.

interface NarinfoColumns {
  readonly body: string;
  readonly trusted: number | boolean;
  readonly own_public_key: string | null;
  readonly own_signature: string | null;
  readonly name: string;
}

function readNarinfoRow(
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

interface KeptColumns {
  readonly kept_hash: string | null;
  readonly kept_size: number | null;
  readonly kept_id: string;
  readonly kept_seal: string | null;
  readonly kept_at_ms: number | null;
  readonly kept_form: string | null;
  readonly came_at_ms: number | null;
}

function readKept(name: NarName, columns: KeptColumns): { readonly kept?: KeptFile } {
  const { kept_hash, kept_size, kept_id, kept_seal, kept_at_ms, kept_form, came_at_ms } = columns;
  if (kept_hash === null || kept_size === null) return {};
  const seal = kept_seal === null ? {} : { seal: kept_seal as Seal };
  const at = storedName(name, kept_id);
  const time = kept_at_ms === null ? {} : { keptAtMs: kept_at_ms };
  const form = kept_form === null ? {} : { form: kept_form as "zstd" };
  const came = kept_form === null || came_at_ms === null ? {} : { cameAtMs: came_at_ms };
  const file = { fileHash: kept_hash as Sha256, fileSize: kept_size };
  return { kept: { at, ...seal, ...time, ...form, ...came, ...file } };
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

interface PinColumns {
  readonly hash: string;
  readonly pinned_at_ms: number;
  readonly by_hand: number | boolean;
  /** Apart by blanks, which no name has. */
  readonly names: string | null;
  readonly keep_complete: number | boolean;
  readonly look: string | null;
}

function readPin(columns: PinColumns): PinRoot {
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

function readKeptNar(columns: KeptColumns & { readonly name: string }): readonly KeptNar[] {
  const name = columns.name as NarName;
  const { kept } = readKept(name, columns);
  return kept === undefined ? [] : [{ name, ...kept }];
}

/** A row of the entries that may be evicted. */
export interface ColdColumns {
  /** Absent for a NAR file without a narinfo. */
  readonly hash?: string | null;
  readonly id: number;
  readonly used_at_ms: number;
  readonly nar_id: number;
  readonly name: string;
  readonly kept_bytes: number;
  readonly kept_id: string;
  readonly sharers: number;
}

/** Lists all entries after it. Rows of one millisecond are in the order of their ids. */
export interface Position {
  readonly usedAtMs: number;
  readonly id: number;
}

/** Sorts before every row. */
const START: Position = { usedAtMs: Number.MIN_SAFE_INTEGER, id: Number.MIN_SAFE_INTEGER };

export function readColdEntry(columns: ColdColumns): ColdEntry {
  const { hash } = columns;
  return {
    ...(hash ? { storePathHash: hash as StorePathHash } : {}),
    narName: columns.name as NarName,
    keptBytes: columns.kept_bytes,
    sharers: columns.sharers,
    usedAtMs: columns.used_at_ms,
    cursor: cursorOf(columns),
  };
}

/** `narinfo` or `nar`, the last use and the row's id. */
function cursorOf({ hash, used_at_ms, id }: ColdColumns): string {
  return `${hash ? "narinfo" : "nar"} ${used_at_ms} ${id}`;
}

/** Positions of both lists after an entry. At the same age narinfos come first. */
export function positionsAfter(
  cursor: string | undefined,
): Record<"narinfos" | "looseNars", Position> {
  if (cursor === undefined) return { narinfos: START, looseNars: START };
  const [kind, ...numbers] = cursor.split(" ");
  const [usedAtMs = START.usedAtMs, id = START.id] = numbers.map(Number);
  const after = { usedAtMs, id };
  return kind === "narinfo"
    ? { narinfos: after, looseNars: { usedAtMs, id: START.id } }
    : { narinfos: { usedAtMs, id: Number.MAX_SAFE_INTEGER }, looseNars: after };
}
