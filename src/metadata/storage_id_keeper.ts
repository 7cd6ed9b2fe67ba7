import type { StorageId } from "../base/storage_id.ts";

/** Keeps the id that a database shares with its store of NAR files. */
export interface StorageIdKeeper {
  /** `undefined`: the database has had no store that has an id. */
  storageId(): Promise<StorageId | undefined>;
  /** Keeps the id, unless there is one. Resolves to the one that is there then. */
  claimStorageId(id: StorageId): Promise<StorageId>;
}
