import type { Bytes } from "../../src/base/bytes.ts";

/** Sorts of files that the paths of a system are made of. */
export const KINDS = ["libraries", "programs", "headers", "sources"] as const;
export type Kind = typeof KINDS[number];

/** A file, or a folder with files. */
export interface Place {
  readonly path: string;
  /** True: links to files count, too. A profile of Nix has nothing else. */
  readonly followsLinks?: boolean;
}

const PLACES: Readonly<Record<Kind, readonly Place[]>> = {
  libraries: placesOf(["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"], "lib"),
  programs: placesOf(["/usr/bin"], "bin"),
  headers: placesOf(["/usr/include"], "include"),
  sources: placesOf(
    ["/usr/share/perl", "/usr/lib/python3", "/usr/lib/python3.11", "/usr/lib/python3.12"],
    "share",
  ),
};

/** For machines with too few files of all kinds. */
const ANY_KIND: readonly Place[] = [{ path: "/nix/store" }, { path: Deno.execPath() }];

/** Names in the Nix store that are no part of a system. */
const NO_CONTENT = /^\.links$|\.drv$/;

/** The same on one machine: its libraries and programs, in the order of their names. */
export function realContent(bytes: number): Bytes {
  return contentOfKinds(["libraries", "programs"], bytes);
}

/** Some bytes of one kind, and of the others where the machine has too few of it. */
export function contentOf(kind: Kind, bytes: number): Bytes {
  return contentOfKinds([kind, ...KINDS.filter((other) => other !== kind)], bytes);
}

function contentOfKinds(kinds: readonly Kind[], bytes: number): Bytes {
  return joinedFiles([...kinds.flatMap((kind) => PLACES[kind]), ...ANY_KIND], bytes);
}

function placesOf(paths: readonly string[], inProfile: string): readonly Place[] {
  const profile = { path: `/run/current-system/sw/${inProfile}`, followsLinks: true };
  return [...paths.map((path) => ({ path })), profile];
}

/** The first bytes of the files at these places. Throws if there are fewer. */
export function joinedFiles(places: readonly Place[], bytes: number): Bytes {
  const content = new Uint8Array(bytes);
  let at = 0;
  for (const path of filesOf(places)) {
    if (at === bytes) break;
    const file = Deno.readFileSync(path).subarray(0, bytes - at);
    content.set(file, at);
    at += file.length;
  }
  if (at === bytes) return content;
  const paths = places.map(({ path }) => path).join(", ");
  throw new Error(`Cannot make real NARs of ${bytes} bytes: this machine has ${at} in ${paths}`);
}

/** Lazy: a Nix store may have a million files. */
function* filesOf(places: readonly Place[]): Generator<string> {
  for (const { path, followsLinks = false } of places) {
    if (infoOf(path)?.isFile) yield path;
    else yield* filesIn(path, followsLinks);
  }
}

/** Files of a folder, then those of the folders in it; none where it does not exist. */
function* filesIn(folder: string, followsLinks: boolean): Generator<string> {
  const entries = entriesIn(folder).toSorted((a, b) => a.name < b.name ? -1 : 1);
  for (const { name, isFile, isSymlink } of entries) {
    const path = `${folder}/${name}`;
    if (isFile || followsLinks && isSymlink && infoOf(path)?.isFile) yield path;
  }
  for (const { name, isDirectory } of entries) {
    if (isDirectory) yield* filesIn(`${folder}/${name}`, followsLinks);
  }
}

function entriesIn(folder: string): readonly Deno.DirEntry[] {
  const entries = orNothing(() => [...Deno.readDirSync(folder)]) ?? [];
  return entries.filter(({ name }) => !NO_CONTENT.test(name));
}

function infoOf(path: string): Deno.FileInfo | undefined {
  return orNothing(() => Deno.statSync(path));
}

function orNothing<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
