import { DatabaseSync } from "node:sqlite";
import { programsMissing } from "./program.ts";
import { tempFolder } from "./temp_folder.ts";

/** "whole": its NARs are files. "chunked": they are cut into chunks. */
export type NcpsKind = "whole" | "chunked";

export const NCPS_KINDS: readonly NcpsKind[] = ["whole", "chunked"];

/** Why the storages cannot be unpacked here; empty when they can. */
export const NCPS_UNAVAILABLE = programsMissing("tar", "xz");

/** The upstreams' keys: each has signed every narinfo of the storages. */
export const NCPS_UPSTREAM_KEYS = [
  "127.0.0.31-1:z2kBKL3wvpLWEOpw/IuHmILuQAEAcf44O8FVLynV0As=",
  "127.0.0.32-1:8E6kB0vIvRPUt54pVSQlXrRiVd/EynlZjTScv0mZHkk=",
] as const;

/** The keys that ncps made for itself. */
export const NCPS_KEYS: Readonly<Record<NcpsKind, string>> = {
  whole: "localhost:xVraKN5UMnkF+MHCcV8rgRbnb/bdOU33teIQg0p0ObI=",
  chunked: "localhost:Y5WqTLPirKWbzlpDxz4jTp4ak8B3M1jFmeLfJ1JPuIE=",
};

/** The pin root of the storages: a chain of four. */
export const NCPS_PINNED = "qs3fr80x6031dcvlg9yb1q9g66prvf5q";

const FIXTURES = new URL("../fixtures/ncps", import.meta.url).pathname;

/** The storage of a real ncps, in a folder of its own. */
export interface NcpsStorage extends Disposable {
  /** Its `--cache-storage-local`. */
  readonly folder: string;
  readonly databasePath: string;
  /** Store paths in the order of their hashes. */
  readonly storePaths: readonly string[];
}

export async function ncpsStorage(kind: NcpsKind): Promise<NcpsStorage> {
  const folder = tempFolder();
  const args = ["-xJf", `${FIXTURES}/${kind}.tar.xz`, "-C", folder.path];
  const { success } = await new Deno.Command("tar", { args }).output();
  if (!success) throw new Error(`Cannot unpack ${kind}.tar.xz`);
  const databasePath = `${folder.path}/${kind}/db/db.sqlite`;
  using database = new DatabaseSync(databasePath, { readOnly: true });
  const rows = database.prepare("SELECT store_path FROM narinfos ORDER BY hash").all();
  return {
    folder: `${folder.path}/${kind}/store`,
    databasePath,
    storePaths: rows.map((row) => String(row["store_path"])),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

/** The store path hash of a store path. */
export function hashIn(storePath: string): string {
  return storePath.slice("/nix/store/".length).slice(0, 32);
}
