import type { S3Place } from "../../src/storage/s3/s3_access.ts";
import type { StorePlaces } from "../../src/app/back_ends/back_ends.ts";
import type { LarderFlags } from "./larder_process.ts";
import { copyDatabase } from "./postgres_programs.ts";
import { s3Flags } from "./s3_server.ts";

/** Names the servers that larders of the tests use in place of files and own locks. */
export const SERVERS_VARIABLE = "LARDER_TEST_SERVERS";

/** Servers that run for as long as the tests. Each storage gets its own place on them. */
export interface SharedServers {
  /** The URL of a database with larder's tables and no rows. Nobody uses it. */
  readonly emptyDatabase?: string | undefined;
  readonly s3?: { readonly place: S3Place; readonly bucketsFolder: string } | undefined;
  /** Host and port. */
  readonly redis?: string | undefined;
}

export const SERVERS: SharedServers = JSON.parse(Deno.env.get(SERVERS_VARIABLE) ?? "{}");

/** Why a test leaves out its steps on a file of SQLite; empty where rows are in one. */
export const ROWS_ELSEWHERE = SERVERS.emptyDatabase === undefined ? "" : "rows are in PostgreSQL";

/** Why a test leaves out its steps on a NAR file; empty where they are files. */
export const NARS_ELSEWHERE = SERVERS.s3 === undefined ? "" : "NAR files are in a bucket";

/** Why a test has no larder without shared locks; empty where each has its own. */
export const LOCKS_ELSEWHERE = SERVERS.redis === undefined ? "" : "locks are in Redis";

/** The places of a storage on the servers. */
interface SharedPlaces {
  readonly databaseUrl: string | undefined;
  readonly bucket: S3Place | undefined;
  readonly keyPrefix: string;
}

/** By the storage's folder: a larder that starts again there finds its own. */
const places = new Map<string, SharedPlaces>();

/** Flags that put the rows, the NAR files and the locks of a storage on the servers, if any run. */
export function sharedFlags(storage: string, given: LarderFlags = {}): LarderFlags {
  if (NOT_SHARED.some((name) => name in given)) return {};
  const { databaseUrl, bucket, keyPrefix } = placesOf(storage);
  return {
    ...(databaseUrl === undefined ? {} : { "cache-database-url": databaseUrl }),
    ...(bucket === undefined ? {} : s3Flags(bucket)),
    ...(SERVERS.redis === undefined || "cache-redis-addrs" in given ? {} : {
      "cache-redis-addrs": SERVERS.redis,
      "cache-lock-redis-key-prefix": keyPrefix,
    }),
  };
}

/** A test that gives one of these has back ends of its own. */
const NOT_SHARED = ["cache-database-url", "cache-storage-s3-bucket"];

/** The database of a storage's rows, if that is on a server. */
export function sharedDatabaseOf(storage: string): string | undefined {
  return placesOf(storage).databaseUrl;
}

/** Whether the NAR files of a storage are in a bucket. */
export function isInBucket(storage: string): boolean {
  return placesOf(storage).bucket !== undefined;
}

/** The folder with the NAR files of a storage. */
export function narFolderOf(storage: string): string {
  const { bucket } = placesOf(storage);
  if (bucket === undefined) return `${storage}/nar`;
  return `${SERVERS.s3?.bucketsFolder}/${bucket.bucket}/nar`;
}

/** The stores of a storage for a test that opens them itself. */
export function storePlacesOf(storage: string): StorePlaces {
  const { databaseUrl, bucket } = placesOf(storage);
  return {
    database: databaseUrl === undefined
      ? { kind: "sqlite", path: `${storage}/db.sqlite` }
      : { kind: "postgres", url: databaseUrl },
    nars: bucket === undefined
      ? { kind: "local", folder: `${storage}/nar` }
      : { kind: "s3", s3: bucket },
  };
}

/** The words that name the stores of a storage to a command. */
export function storageWords(storage: string): readonly string[] {
  const flags = { "cache-storage-local": storage, ...sharedFlags(storage) };
  return Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
}

function placesOf(storage: string): SharedPlaces {
  let found = places.get(storage);
  if (found === undefined) places.set(storage, found = makePlaces());
  return found;
}

function makePlaces(): SharedPlaces {
  const { emptyDatabase, s3 } = SERVERS;
  const id = crypto.randomUUID();
  let databaseUrl: string | undefined;
  if (emptyDatabase !== undefined) {
    databaseUrl = new URL(`/larder_${id.replaceAll("-", "_")}`, emptyDatabase).href;
    copyDatabase(emptyDatabase, databaseUrl);
  }
  const bucket = s3 && { ...s3.place, bucket: `larder-${id}` };
  if (bucket !== undefined) Deno.mkdirSync(`${s3?.bucketsFolder}/${bucket.bucket}`);
  return { databaseUrl, bucket, keyPrefix: `${id}:` };
}
