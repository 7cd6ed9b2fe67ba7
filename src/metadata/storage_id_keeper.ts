import type { StorageId } from "../base/storage_id.ts";

/** Keeps the id that a database shares with its store of NAR files. */
export interface StorageIdKeeper {
  /** `undefined`: the database has had no store that has an id. */
  storageId(): Promise<StorageId | undefined>;
  /** Keeps the id unless the database has one. Resolves to the id of the database. */
  claimStorageId(id: StorageId): Promise<StorageId>;
}
