/** A copy of an SQLite database and its log in a temporary folder, until disposed of. */
export function copyDatabase(path: string): Disposable & { readonly path: string } {
  const folder = Deno.makeTempDirSync({ prefix: "larder-copy-" });
  const copy = `${folder}/db.sqlite`;
  const remove = () => Deno.removeSync(folder, { recursive: true });
  try {
    Deno.copyFileSync(path, copy);
    if (fileBytes(`${path}-wal`) > 0) Deno.copyFileSync(`${path}-wal`, `${copy}-wal`);
    return { path: copy, [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** 0 for a missing file. */
export function fileBytes(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
