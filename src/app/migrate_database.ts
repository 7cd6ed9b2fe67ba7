import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../base/failure.ts";
import { type CopyProgress, MetadataCopy } from "../metadata/copy_metadata.ts";
import { parseSecretKey } from "../nix/signature.ts";
import { SILENT } from "../telemetry/logger.ts";
import { databaseName } from "./back_ends/back_ends.ts";
import { livingMember } from "./back_ends/members.ts";
import {
  type DatabasePlace,
  type MetadataBackEnd,
  openCopy,
  readMetadata,
} from "./back_ends/metadata_back_end.ts";
import { keyFileIn } from "./key_files.ts";
import { adoptSigningKey } from "./signing_key.ts";

/** A server that changes rows all the time never lets a pass find nothing. */
const PASSES_MAX = 5;

export interface DatabaseMove {
  readonly from: DatabasePlace;
  readonly to: DatabasePlace;
  readonly signal: AbortSignal;
  /** Called with the copy, whose progress goes on. */
  readonly started: (copy: { readonly progress: CopyProgress }) => void;
}

/**
 * A file with the signing key beside the old or the new database; "elsewhere": there is none, as
 * the storage is in another place.
 */
export type KeyPlace = { readonly path: string } | "elsewhere";

export interface DatabaseMoved {
  /** Rows that all passes have copied. */
  readonly copied: number;
  /** Rows that all passes have removed from the new one. */
  readonly removed: number;
  /** Rows that the last pass compared. */
  readonly compared: number;
  /** True if the last pass found nothing to copy or to remove. */
  readonly isSame: boolean;
  /** The place of the signing key, unless the new database has it. */
  readonly key?: KeyPlace;
}

/**
 * Copies a database, until a pass finds both the same. Throws a Failure for unusable ones, and for
 * a new one that has rows of its own, which a copy would remove.
 */
export async function migrateDatabase(order: DatabaseMove): Promise<DatabaseMoved> {
  const { from, to, signal, started } = order;
  await using opened = new AsyncDisposableStack();
  const source = opened.use(await readMetadata(from, SILENT));
  const target = opened.use(await openCopy(to, SILENT));
  await claimTarget({ source, target, from });
  const key = await copyKey({ source, target, from }, to);
  const confirm = () => confirmCopy(target);
  const copy = new MetadataCopy({ from: source, to: target, confirm });
  started(copy);
  let [copied, removed] = [0, 0];
  for (let pass = 1;; pass++) {
    const last = await copy.pass(signal);
    copied += last.copied;
    removed += last.removed;
    const isSame = last.copied === 0 && last.removed === 0;
    if (!isSame && pass < PASSES_MAX) continue;
    if (!await target.areSumsRight()) throw refused("the sums of the new one are wrong");
    const { compared } = last;
    return { copied, removed, compared, isSame, ...key === undefined ? {} : { key } };
  }
}

interface TargetClaim {
  readonly source: MetadataBackEnd;
  readonly target: MetadataBackEnd;
  readonly from: DatabasePlace;
}

/**
 * Marks the new database as a copy of the old one. One with rows must be marked already. Otherwise
 * the rows that the old one lacks are its own, and it may be the one that is in use.
 */
async function claimTarget({ source, target, from }: TargetClaim): Promise<void> {
  const member = await livingMember(target);
  if (member !== undefined) throw refused(`larder ${member} uses the new one; stop it`);
  const id = await source.storageId();
  const there = await target.storageId();
  if (there !== undefined && id !== undefined && there !== id) {
    throw refused(`the new one belongs to other NAR files; ${HINT}`);
  }
  const names = [id, databaseName(from)];
  const original = await target.originalName();
  if (original !== undefined && !names.includes(original)) {
    throw refused(`the new one is a copy of another database; ${HINT}`);
  }
  if (original === undefined && !await isEmpty(target)) {
    throw refused(`the new one has rows of its own; ${HINT}`);
  }
  if (id !== undefined) await target.claimStorageId(id);
  await target.markCopy(id ?? databaseName(from));
}

const HINT = "give an empty database";

async function isEmpty(metadata: MetadataBackEnd): Promise<boolean> {
  const lists = await Promise.all([
    metadata.listNarinfos("", 1),
    metadata.listLooseNars("", 1),
    metadata.listDocuments("", 1),
    metadata.pins(),
  ]);
  return lists.every((rows) => rows.length === 0);
}

/** A larder that starts on the new database ends this. */
async function confirmCopy(target: MetadataBackEnd): Promise<void> {
  if (await target.originalName() !== undefined) return;
  throw refused("a larder has begun to use the new one");
}

/**
 * Gives the new database the signing key of an old one that has it among its rows: clients trust
 * that key. For SQLite it is a file. The result is the place of a key that is not in the database.
 */
async function copyKey(
  { source, target, from }: TargetClaim,
  to: DatabasePlace,
): Promise<KeyPlace | undefined> {
  if (from.kind === "sqlite") return keyBeside(from.path);
  const key = await source.keys?.signingKey();
  if (key === undefined) return undefined;
  if (to.kind === "postgres") {
    if (await target.keys?.adoptSigningKey(key) === key) return undefined;
    throw refused(`the new one has another signing key; ${HINT}`);
  }
  const path = keyFileIn(dirname(to.path));
  const adopted = await adoptSigningKey(path, parseSecretKey(key));
  if (adopted.text === key.trim()) return { path };
  const hint = "move that file away, if no client trusts its key";
  throw refused(`${path} has another signing key than the old one; ${hint}`);
}

/** A larder makes the key in its storage, where an SQLite file is by default. */
function keyBeside(database: string): KeyPlace {
  const path = keyFileIn(dirname(database));
  return existsSync(path) ? { path } : "elsewhere";
}

function refused(reason: string): Failure {
  return new Failure("broken", `Cannot migrate database: ${reason}`);
}
