import { DatabaseSync } from "node:sqlite";
import type { NarName } from "../../src/nix/nar_name.ts";
import { narNameOf, type StoredName } from "../../src/nix/stored_name.ts";
import { clock } from "../../src/runtime/current.ts";
import { MARK_NAME } from "../../src/storage/storage_mark.ts";
import { queryPostgres } from "./postgres_programs.ts";
import { isInBucket, narFolderOf, sharedDatabaseOf } from "./shared_servers.ts";

/** The accounts of a storage's database about its NAR files. */
export interface StorageAccounts {
  readonly countedBytes: number;
  readonly keptFiles: number;
  /** Names of files that are being stored or removed. */
  readonly pending: readonly string[];
  /** Store path hashes. */
  readonly narinfos: ReadonlySet<string>;
  /** Reserved bytes by member. */
  readonly reserved: readonly number[];
}

/** Sizes of all files below a folder but the mark, by path. One that goes meanwhile is left out. */
export function filesBelow(folder: string): ReadonlyMap<string, number> {
  const files = new Map<string, number>();
  const add = (path: string) => {
    try {
      const { isDirectory, size } = Deno.lstatSync(path);
      if (path.endsWith(`/${MARK_NAME}`)) return;
      if (!isDirectory) return void files.set(path, size);
      for (const { name } of Deno.readDirSync(path)) add(`${path}/${name}`);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  };
  add(folder);
  return files;
}

/** Sizes of all NAR files in a storage, by path, wherever it keeps them. */
export function narFilesIn(storage: string): ReadonlyMap<string, number> {
  return filesBelow(narFolderOf(storage));
}

/** The path of a NAR's one stored object. */
export function storedFileOf(storage: string, narName: string): string {
  const paths = [...narFilesIn(storage).keys()].filter((path) => narNameIn(path) === narName);
  const [path] = paths;
  if (path === undefined || paths.length > 1) throw new Error(`${narName} is there as ${paths}`);
  return path;
}

/** Of a path, or of a stored name. */
export function narNameIn(path: string): NarName {
  return narNameOf(path.slice(path.lastIndexOf("/") + 1) as StoredName);
}

/**
 * Of all NAR files in a storage, growing ones included: those that are there at one moment. Those
 * that grow beside a bucket are on another disk, and do not count.
 */
export function narBytesIn(storage: string): number {
  const growing = isInBucket(storage) ? [] : [`${storage}/tmp`];
  const sizesNow = () =>
    new Map([narFolderOf(storage), ...growing].flatMap((at) => [...filesBelow(at)]));
  // Files come and go during a look. A file that two of them see was there in between.
  const [first, second] = [sizesNow(), sizesNow()];
  return [...first].reduce(
    (sum, [path, size]) => sum + Math.min(size, second.get(path) ?? 0),
    0,
  );
}

/** Reads a storage's database, which a larder may have open. */
export function accountsOf(storage: string): StorageAccounts {
  const rows = rowsOf(storage);
  const [stock = []] = rows("SELECT kept_bytes + pending_bytes, kept_files FROM stock");
  const column = (sql: string) => rows(sql).map(([value = ""]) => value);
  return {
    countedBytes: Number(stock[0]),
    keptFiles: Number(stock[1]),
    pending: column("SELECT name FROM pending_file JOIN nar ON id = nar_id"),
    reserved: column("SELECT reserved_bytes FROM member").map(Number),
    narinfos: new Set(column("SELECT hash FROM narinfo JOIN path ON id = path_id")),
  };
}

/** Runs a query over a storage's database, whichever that is. The values are texts. */
export function rowsOf(storage: string): (sql: string) => readonly (readonly string[])[] {
  const url = sharedDatabaseOf(storage);
  if (url !== undefined) {
    return (sql) => queryPostgres(url, sql).map((line) => line.split("|"));
  }
  return (sql) => {
    using database = new DatabaseSync(`${storage}/db.sqlite`, { readOnly: true });
    return database.prepare(sql).all().map((row) => Object.values(row).map(String));
  };
}

/** Looks at a storage every `everyMs` until it is stopped. */
export function sampleNarBytes(storage: string, everyMs: number) {
  let [most, samples, going] = [0, 0, true];
  const sampling = (async () => {
    for (; going; samples++) {
      most = Math.max(most, narBytesIn(storage));
      await clock.pause(everyMs);
    }
  })();
  return {
    /** The most that was there at once, and how often it was looked. */
    async stop(): Promise<{ readonly most: number; readonly samples: number }> {
      going = false;
      await sampling;
      return { most, samples };
    },
  };
}
