import { dice } from "../runtime/current.ts";

declare const brand: unique symbol;

/** Names a database and the store of NAR files that belongs to it. Both keep it. */
export type StorageId = string & { readonly [brand]: "storage id" };

/** An id that no storage had before. */
export function newStorageId(): StorageId {
  return dice.uuid() as string as StorageId;
}
