import type {
  CopyMarks,
  DamageFinder,
  KeyKeeper,
  MetadataStore,
  RowLister,
  StorageIdKeeper,
} from "../../metadata/metadata_store.ts";
import type { ChangeFeed } from "../../metadata/change_feed.ts";
import type { MemberBoard } from "../../metadata/member_board.ts";
import { openDatabase, openToCopy } from "../../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../metadata/sqlite/sqlite_metadata_store.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** The place of the metadata. A message to a Worker can hold it. */
export type DatabasePlace =
  | { readonly kind: "sqlite"; readonly path: string }
  /** The URL may have a password. */
  | { readonly kind: "postgres"; readonly url: string };

export type MetadataBackEnd =
  & MetadataStore
  & DamageFinder
  & RowLister
  & ChangeFeed
  & StorageIdKeeper
  & CopyMarks
  & AsyncDisposable
  & {
    readonly board: MemberBoard;
    /** Keeper of the signing key, if several machines may share the database. */
    readonly keys?: KeyKeeper;
  };

/**
 * Opens a database for a larder's own use, so that it counts as a copy no more. Makes missing
 * tables. Throws a Failure that names an unusable database.
 */
export async function openMetadata(place: DatabasePlace, log: Logger): Promise<MetadataBackEnd> {
  const metadata = await openCopy(place, log);
  try {
    if (await metadata.originalName() !== undefined) await metadata.markCopy(undefined);
    return metadata;
  } catch (error) {
    await metadata[Symbol.asyncDispose]();
    throw error;
  }
}

/** The same for a copy, which stays one. */
export async function openCopy(place: DatabasePlace, log: Logger): Promise<MetadataBackEnd> {
  if (place.kind === "sqlite") {
    return new SqliteMetadataStore(await openDatabase(place.path, undefined, log));
  }
  return await (await postgres()).PostgresMetadataStore.open({ url: place.url, log });
}

/** Opens a database that has this larder's tables, and changes none. */
export async function readMetadata(place: DatabasePlace, log: Logger): Promise<MetadataBackEnd> {
  if (place.kind === "sqlite") return new SqliteMetadataStore(openToCopy(place.path));
  return await (await postgres()).PostgresMetadataStore.open({
    url: place.url,
    log,
    migrates: false,
  });
}

// Loaded here alone: a larder with SQLite needs no client of PostgreSQL.
async function postgres() {
  return await import("../../metadata/postgres/postgres_metadata_store.ts");
}
