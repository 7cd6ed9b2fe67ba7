import { Failure, messageOf } from "../../base/failure.ts";
import {
  type Change,
  type ChangeWriter,
  IntentLost,
  type KeptFile,
  type NarFinder,
  type ReplaceCondition,
} from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { narNameOf, newStoredName, type Seal, type StoredName } from "../../nix/stored_name.ts";
import type { NarWriter } from "../../storage/nar_store.ts";
import { isOfFullDisk } from "../../telemetry/events.ts";

export interface PublishNarDeps {
  readonly metadata: ChangeWriter & Pick<NarFinder, "findNar">;
  readonly nars: Pick<NarWriter, "remove" | "isAway"> & {
    /** Like that of a store; resolves to `undefined` where its seal would prove nothing. */
    put(...args: Parameters<NarWriter["put"]>): Promise<Seal | undefined>;
  };
  readonly nowMs: () => number;
  /** This process, in the row of a pending file. */
  readonly owner: string;
}

/** A finished and verified NAR file. */
export interface FinishedNar extends Pick<KeptFile, "fileHash" | "fileSize" | "form"> {
  readonly name: NarName;
  /** The storage takes it over. */
  readonly path: string;
  /** Its bytes in the ledger; `undefined` without a limit. */
  readonly reservedBytes?: number | undefined;
  /** Rejects with Irreplaceable where it does not hold. */
  readonly replaces?: ReplaceCondition;
}

/** What kept a file from being stored: this machine's disk, or another part of the storage. */
export type NotKeptBy = "disk" | "storage" | "database";

/** The parts whose errors these are: each back end has types of its own. */
const FAILED = new WeakMap<WeakKey, "storage" | "database">();

/** What failed, by an error of `publishNar` or of an earlier step. */
export function notKeptBy(error: unknown): NotKeptBy {
  const part = error instanceof Error ? FAILED.get(error) : undefined;
  if (part === "database" && isOfFullDisk({ error: messageOf(error) })) return "disk";
  // A folder on this machine fails with the system's errors.
  if (part === "storage" && !(error instanceof Failure && error.kind === "unavailable")) {
    return "disk";
  }
  return part ?? "disk";
}

async function by<Value>(part: "storage" | "database", call: Promise<Value>): Promise<Value> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Error) FAILED.set(error, part);
    throw error;
  }
}

/** The objects that this process publishes now. */
const PUBLISHING = new Set<StoredName>();

/** True while this process publishes the object: its intent is not left over. */
export function isPublishing(at: StoredName): boolean {
  return PUBLISHING.has(at);
}

/**
 * Writes intent, object and row in this order: recovery settles the remains of a crash. It writes
 * `first` with the intent.
 */
export async function publishNar(
  deps: PublishNarDeps,
  finished: FinishedNar,
  first: readonly Change[] = [],
): Promise<void> {
  const at = newStoredName(finished.name);
  PUBLISHING.add(at);
  try {
    await publishAs(at, deps, finished, first);
  } finally {
    PUBLISHING.delete(at);
  }
}

async function publishAs(
  at: StoredName,
  deps: PublishNarDeps,
  { path, fileHash, fileSize, reservedBytes, form, replaces }: FinishedNar,
  first: readonly Change[],
): Promise<void> {
  const { nars, metadata, nowMs, owner } = deps;
  // Each try would leave an intent that somebody must settle once the store is back.
  if (nars.isAway) await by("storage", Promise.reject(storeIsAway()));
  await by("database", metadata.apply([...first, { kind: "nar-publishing", at, owner }]));
  try {
    const seal = await by("storage", nars.put(at, path));
    const atMs = nowMs();
    const sealed = seal === undefined ? {} : { seal };
    const formed = form === undefined ? {} : { form };
    const file = { at, ...sealed, fileHash, fileSize, keptAtMs: atMs, ...formed };
    const reserved = reservedBytes === undefined ? {} : { reservedBytes };
    const condition = replaces === undefined ? {} : { replaces };
    const kept: Change = { kind: "nar-kept", file, owner, atMs, ...reserved, ...condition };
    await by("database", metadata.apply([kept]));
  } catch (error) {
    if (await settle(deps, at, fileSize) !== "kept") throw error;
  }
}

function storeIsAway(): Failure {
  return new Failure("unavailable", "Cannot store NAR file: the store took none of late");
}

/**
 * Settles the row before the object: the database may have kept it, and only the answer was lost.
 * Where the database does not answer, both stay, and recovery settles the intent if it is left.
 * Never throws: the caller has an error to report.
 */
async function settle(
  { nars, metadata, owner }: PublishNarDeps,
  at: StoredName,
  fileSize: number,
): Promise<"kept" | "not kept"> {
  try {
    if (!await canTake(metadata, at)) return "kept";
  } catch {
    return "not kept";
  }
  try {
    // Without a row the accounts would not count it.
    await nars.remove(at);
    await metadata.apply([{ kind: "nar-gone", at }]);
  } catch {
    // The sweeper tries again, and logs why it cannot.
    await metadata.apply([{ kind: "nar-stuck", at, owner, fileSize }]).catch(() => undefined);
  }
  return "not kept";
}

/** False where the object is kept. After true nothing keeps it any more. */
async function canTake(
  metadata: PublishNarDeps["metadata"],
  at: StoredName,
): Promise<boolean> {
  try {
    await metadata.apply([{ kind: "nar-taken", at }]);
    return true;
  } catch (error) {
    if (!(error instanceof IntentLost)) throw error;
    // Else another member, which took this one for dead, has settled it.
    return (await metadata.findNar(narNameOf(at), { fresh: true }))?.kept?.at !== at;
  }
}
