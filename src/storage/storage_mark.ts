import { Failure } from "../base/failure.ts";
import type { StorageId } from "../base/storage_id.ts";

/** The name of the mark, beside the NAR files. */
export const MARK_NAME = "larder-storage-id";

/** Names the database that knows the NAR files of a store. */
export interface StorageMark {
  readonly id: StorageId;
  /** The database in words, without secrets. */
  readonly database: string;
}

/** The mark of one store. */
export interface StorageMarks {
  /** `undefined` means certainly absent. "Could not tell" is a throw. */
  read(): Promise<StorageMark | undefined>;
  /** Writes the mark unless the store has one. Resolves to the mark of the store. */
  claim(mark: StorageMark): Promise<StorageMark>;
  /** Writes the mark in the place of any other. */
  replace(mark: StorageMark): Promise<void>;
}

export function formatMark({ id, database }: StorageMark): string {
  return `${JSON.stringify({ id, database })}\n`;
}

/** Throws for a text that larder did not write. */
export function parseMark(text: string): StorageMark {
  try {
    const { id, database } = JSON.parse(text);
    if (typeof id === "string" && typeof database === "string") {
      return { id: id as StorageId, database };
    }
  } catch {
    // The sentence below says it.
  }
  throw new Failure("broken", `Cannot read ${MARK_NAME}: it is damaged; remove it`);
}
