import { DatabaseSync } from "node:sqlite";
import { reasonOf } from "../../base/failure.ts";

/**
 * A lock that lasts as long as its process: the system frees it when that dies, however it does,
 * and whatever process ids mean where it ran. Deno can wait for a file's lock but not try it;
 * SQLite can, and its empty database is a lock like any other.
 */
export class ProcessLock implements Disposable {
  readonly #path: string;
  #database: DatabaseSync | undefined;

  /** Takes the lock; throws when the file cannot be made, or somebody has it. */
  constructor(path: string) {
    this.#path = path;
    this.#database = lock(path);
  }

  [Symbol.dispose](): void {
    if (this.#database === undefined) return;
    this.#database.close();
    this.#database = undefined;
    removeIfThere(this.#path);
  }
}

/** False when nobody has the lock: its file is gone then. Whoever cannot tell takes it for held. */
export function isLocked(path: string): boolean {
  try {
    Deno.statSync(path);
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
  try {
    lock(path).close();
    removeIfThere(path);
    return false;
  } catch {
    return true;
  }
}

function lock(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // No second file beside it.
    database.exec("PRAGMA journal_mode = MEMORY");
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    throw new Error(`Cannot lock ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
