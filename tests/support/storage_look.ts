import { DatabaseSync } from "node:sqlite";
import type { NarName } from "../../src/nix/nar_name.ts";
import { narNameOf, type StoredName } from "../../src/nix/stored_name.ts";
import { pause } from "../../src/base/pause.ts";
import { MARK_NAME } from "../../src/storage/storage_mark.ts";

/** What the database of a storage says of its NAR files. */
export interface StorageAccounts {
  readonly countedBytes: number;
  readonly keptFiles: number;
  /** Names of files on their way in or out. */
  readonly pending: readonly string[];
  /** Store path hashes. */
  readonly narinfos: ReadonlySet<string>;
  /** Reserved bytes by member. */
  readonly reserved: readonly number[];
}

/** Sizes of all files below a folder but the mark, by path. One that goes meanwhile is left out. */
export function filesBelow(folder: string): ReadonlyMap<string, number> {
  const files = new Map<string, number>();
  const look = (path: string) => {
    try {
      const { isDirectory, size } = Deno.lstatSync(path);
      if (path.endsWith(`/${MARK_NAME}`)) return;
      if (!isDirectory) return void files.set(path, size);
      for (const { name } of Deno.readDirSync(path)) look(`${path}/${name}`);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  };
  look(folder);
  return files;
}

/** The path of a NAR's one stored object. */
export function storedFileOf(storage: string, narName: string): string {
  const folder = `${storage}/nar/${narName.slice(0, 2)}`;
  const paths = [...filesBelow(folder).keys()].filter((path) => narNameIn(path) === narName);
  const [path] = paths;
  if (path === undefined || paths.length > 1) throw new Error(`${narName} is there as ${paths}`);
  return path;
}

/** Of a path, or of a stored name. */
export function narNameIn(path: string): NarName {
  return narNameOf(path.slice(path.lastIndexOf("/") + 1) as StoredName);
}

/** Of all NAR files in a storage, growing ones included: those that are there at one moment. */
export function narBytesIn(storage: string): number {
  const look = () => new Map([...filesBelow(`${storage}/nar`), ...filesBelow(`${storage}/tmp`)]);
  // Files come and go during a look. What two of them see was there in between.
  const [first, second] = [look(), look()];
  return [...first].reduce(
    (sum, [path, size]) => sum + Math.min(size, second.get(path) ?? 0),
    0,
  );
}

/** Reads a storage's database, which a larder may have open. */
export function accountsOf(storage: string): StorageAccounts {
  using database = new DatabaseSync(`${storage}/db.sqlite`, { readOnly: true });
  const stock = database.prepare("SELECT kept_bytes, kept_files, pending_bytes FROM stock").get();
  const column = (sql: string, name: string) =>
    database.prepare(sql).all().map((row) => String(row[name]));
  return {
    countedBytes: Number(stock?.["kept_bytes"]) + Number(stock?.["pending_bytes"]),
    keptFiles: Number(stock?.["kept_files"]),
    pending: column("SELECT name FROM pending_file JOIN nar ON id = nar_id", "name"),
    reserved: column("SELECT reserved_bytes FROM member", "reserved_bytes").map(Number),
    narinfos: new Set(column("SELECT hash FROM narinfo JOIN path ON id = path_id", "hash")),
  };
}

/** Looks at a storage every `everyMs` until it is stopped. */
export function sampleNarBytes(storage: string, everyMs: number) {
  let [most, samples, going] = [0, 0, true];
  const sampling = (async () => {
    for (; going; samples++) {
      most = Math.max(most, narBytesIn(storage));
      await pause(everyMs);
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
