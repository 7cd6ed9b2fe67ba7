import { fileBytes } from "./files.ts";

/** A copy of an SQLite database and its log in a temporary folder, until disposed of. */
export function copyDatabase(path: string): Disposable & { readonly path: string } {
  const folder = Deno.makeTempDirSync({ prefix: "larder-copy-" });
  const copy = `${folder}/db.sqlite`;
  const remove = () => Deno.removeSync(folder, { recursive: true });
  try {
    Deno.copyFileSync(path, copy);
    if (fileBytes(`${path}-wal`)) Deno.copyFileSync(`${path}-wal`, `${copy}-wal`);
    return { path: copy, [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}
