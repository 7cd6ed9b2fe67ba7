/** Sorts of files that the paths of a system are made of. */
export const KINDS = ["libraries", "programs", "headers", "sources"] as const;
export type Kind = typeof KINDS[number];

const FOLDERS: Readonly<Record<Kind, readonly string[]>> = {
  libraries: ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"],
  programs: ["/usr/bin"],
  headers: ["/usr/include"],
  sources: ["/usr/share/perl", "/usr/lib/python3", "/usr/lib/python3.11", "/usr/lib/python3.12"],
};

/** The same on one machine: its libraries and programs, in the order of their names. */
export function realContent(bytes: number): Uint8Array<ArrayBuffer> {
  return joinedFiles(["libraries", "programs"], bytes);
}

/** Some bytes of one kind, and of the others where the machine has too few of it. */
export function contentOf(kind: Kind, bytes: number): Uint8Array<ArrayBuffer> {
  return joinedFiles([kind, ...KINDS.filter((other) => other !== kind)], bytes);
}

function joinedFiles(kinds: readonly Kind[], bytes: number): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(bytes);
  let at = 0;
  for (const path of kinds.flatMap((kind) => FOLDERS[kind]).flatMap(filesIn)) {
    if (at === bytes) return content;
    const file = Deno.readFileSync(path).subarray(0, bytes - at);
    content.set(file, at);
    at += file.length;
  }
  return content.slice(0, at);
}

/** Files of a folder, then those of the folders in it; none where it does not exist. */
function filesIn(folder: string): readonly string[] {
  const entries = entriesIn(folder).toSorted((a, b) => a.name < b.name ? -1 : 1);
  const files = entries.filter(({ isFile }) => isFile).map(({ name }) => `${folder}/${name}`);
  const folders = entries.filter(({ isDirectory }) => isDirectory);
  return [...files, ...folders.flatMap(({ name }) => filesIn(`${folder}/${name}`))];
}

function entriesIn(folder: string): readonly Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
