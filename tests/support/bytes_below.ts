/** Of all files in a folder; a file that is removed meanwhile has none. */
export function bytesBelow(path: string): number {
  try {
    const { isDirectory, size } = Deno.lstatSync(path);
    if (!isDirectory) return size;
    const names = [...Deno.readDirSync(path)].map(({ name }) => name);
    return names.reduce((bytes, name) => bytes + bytesBelow(`${path}/${name}`), 0);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
