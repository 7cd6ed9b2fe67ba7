/** The time of change of each file in the executable. */
const MTIME = new Date(0);

/**
 * Gives these files and folders one time of change, as the executable holds it for each file.
 * Disposing restores the former times.
 */
export function sameTimes(paths: readonly string[]): Disposable {
  const former = new Map<string, Date>();
  const set = (path: string) => {
    const { isDirectory, mtime } = Deno.lstatSync(path);
    if (isDirectory) {
      return [...Deno.readDirSync(path)].forEach(({ name }) => set(`${path}/${name}`));
    }
    if (mtime === null || Deno.lstatSync(path).isSymlink) return;
    former.set(path, mtime);
    Deno.utimeSync(path, MTIME, MTIME);
  };
  for (const path of paths) set(path);
  return {
    [Symbol.dispose]() {
      for (const [path, mtime] of former) restore(path, mtime);
    },
  };
}

/** Deno's lock files in node_modules come and go. */
function restore(path: string, mtime: Date): void {
  try {
    Deno.utimeSync(path, mtime, mtime);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
