import { WORKER_THREADS } from "../../runtime/threads.ts";
import { copyDatabase } from "../../base/database_copy.ts";
import { Failure, reasonOf } from "../../base/failure.ts";
import { fileBytes } from "../../base/files.ts";
import { newestSchema, readMigrations } from "../../metadata/migrations.ts";
import { isForeign, openForReading, schemaVersionOf } from "../../metadata/sqlite/connection.ts";
import { readStorageHealth, type StorageHealth } from "../../metadata/storage_health.ts";
import { clock } from "../../runtime/current.ts";
import { SILENT } from "../../telemetry/logger.ts";
import { type DatabasePlace, readMetadata } from "../back_ends/metadata_back_end.ts";
import { sharedKey } from "../own_key.ts";
import { JobWorker } from "../workers/job_worker.ts";
import type { DatabaseJob, FromHealthWorker } from "../workers/messages.ts";

/** The state of the database. */
export type DatabaseState =
  | {
    readonly kind: "healthy" | "damaged";
    readonly health: StorageHealth;
    readonly bytes?: number;
    /** Public key of the signing key in the database. */
    readonly publicKey?: string;
    /** How far this machine's clock is ahead of that of the database's server. */
    readonly clockLeadMs?: number;
  }
  /** No larder has used this storage. */
  | { readonly kind: "missing" }
  /** Another program has made it. */
  | { readonly kind: "foreign" }
  /** The database has another schema than this larder. */
  | { readonly kind: "older" | "newer"; readonly version: number; readonly known: number }
  | { readonly kind: "unreadable"; readonly reason: string }
  /** Reading it would change files, or copy too much. */
  | { readonly kind: "unknown"; readonly reason: string };

export interface DatabaseLook {
  readonly place: DatabasePlace;
  /** True if a server has the database open. */
  readonly isInUse: boolean;
}

/** A copy for reading takes this much of the temporary folder at most. */
const COPY_BYTES_MAX = 512 << 20;

/**
 * Reads the database without a change. SQLite writes files beside a database that nobody has open,
 * even to read it: larder then reads a copy. Never rejects.
 */
export async function readDatabase({ place, isInUse }: DatabaseLook): Promise<DatabaseState> {
  try {
    if (place.kind === "postgres") return await readPlace(place);
    const { path } = place;
    const databaseBytes = fileBytes(path) ?? 0;
    if (databaseBytes === 0) return { kind: "missing" };
    const bytes = databaseBytes + (fileBytes(`${path}-wal`) ?? 0);
    if (isInUse) return await readAt(path, bytes);
    if (bytes > COPY_BYTES_MAX) {
      return { kind: "unknown", reason: "larder is stopped, and the database is large" };
    }
    const before = timesOf(path);
    using copy = copyDatabase(path);
    // A copy of changing files is no database; but then another process has it open.
    if (timesOf(path) !== before) return await readAt(path, bytes);
    return await readAt(copy.path, bytes);
  } catch (error) {
    return { kind: "unreadable", reason: reasonOf(error) };
  }
}

async function readPlace(place: DatabasePlace): Promise<DatabaseState> {
  await using metadata = await readMetadata(place, SILENT);
  const clockLeadMs = clock.wallMs() - await metadata.board.sharedNowMs();
  const state = { ...stateOf(await readStorageHealth(metadata)), clockLeadMs };
  const key = metadata.keys && await sharedKey(metadata.keys);
  return key === undefined ? state : { ...state, publicKey: key.publicKey.text };
}

function stateOf(health: StorageHealth): Extract<DatabaseState, { health: StorageHealth }> {
  const isHealthy = health.damage.length === 0 && health.areSumsRight;
  return { kind: isHealthy ? "healthy" : "damaged", health };
}

async function readAt(path: string, bytes: number): Promise<DatabaseState> {
  const known = newestSchema(readMigrations("sqlite"));
  using database = openForReading(path);
  if (isForeign(database)) return { kind: "foreign" };
  const version = schemaVersionOf(database);
  if (version !== known) return { kind: version > known ? "newer" : "older", version, known };
  return { ...stateOf(await healthOf(path)), bytes };
}

async function healthOf(databasePath: string): Promise<StorageHealth> {
  using worker = new JobWorker<DatabaseJob, FromHealthWorker>({
    threads: WORKER_THREADS,
    url: new URL("../workers/health_worker.ts", import.meta.url),
    died: (id, error) => ({ id, error }),
  });
  const answer = await worker.ask((id) => ({ id, databasePath }));
  if ("health" in answer) return answer.health;
  throw new Failure("broken", answer.error);
}

/** The sizes and times of the database and its log. */
function timesOf(path: string): string {
  return [path, `${path}-wal`].map((file) => {
    const info = fileBytes(file) ? Deno.statSync(file) : undefined;
    return `${info?.size} ${info?.mtime?.getTime()}`;
  }).join();
}
