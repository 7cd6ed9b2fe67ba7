import { fileBytes } from "./files.ts";

/** A copy of an SQLite database and its log in a temporary folder, until disposed of. */
export function copyDatabase(path: string): Disposable & { readonly path: string } {
  const folder = Deno.makeTempDirSync({ prefix: "larder-copy-" });
  const remove = () => Deno.removeSync(folder, { recursive: true });
  try {
    return { path: copyDatabaseInto(folder, path), [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Copies an SQLite database and its log, and returns the path of the copy. */
export function copyDatabaseInto(folder: string, path: string): string {
  const copy = `${folder}/db.sqlite`;
  Deno.copyFileSync(path, copy);
  if (fileBytes(`${path}-wal`)) Deno.copyFileSync(`${path}-wal`, `${copy}-wal`);
  return copy;
}
