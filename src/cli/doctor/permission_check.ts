import { reasonOf } from "../../base/failure.ts";
import { type Finding, findingsOn } from "./finding.ts";

export interface PermissionPlaces {
  readonly storage: string;
  /** Further folders and files that larder writes. Missing ones are no fault. */
  readonly written: readonly string[];
  /** Folders whose direct subfolders larder writes too. */
  readonly sharded: readonly string[];
  /** Files that no other user may read. Missing ones are no fault. */
  readonly secrets: readonly string[];
}

/** Rights of the owner to read, write and list. */
const OWNER_FOLDER = 0o700;
const OWNER_FILE = 0o600;
const OTHERS = 0o007;

/** Maximum paths in one finding: the first ones. */
const SHOWN_MAX = 3;

/**
 * Compares owners and modes by the file system alone. One user owns all files that larder writes: a
 * command that ran as another user leaves files that the server cannot change.
 */
export function checkPermissions(places: PermissionPlaces): readonly Finding[] {
  const { ok, warning, failed, notChecked } = findingsOn("permissions");
  const { storage } = places;
  let folder: Deno.FileInfo;
  try {
    folder = Deno.statSync(storage);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      const advice = "larder serve makes it; or name the storage with --cache-storage-local";
      return [warning(`there is no ${storage}`, advice)];
    }
    return [notChecked(`${storage}: ${reasonOf(error)}`, "run this as the user of larder")];
  }
  if (!folder.isDirectory) {
    return [failed(`${storage} is no directory`, "name one with --cache-storage-local")];
  }
  const findings: Finding[] = [];
  const { foreign, closed, unreadable } = lookAt(places, folder);
  if (foreign.length > 0) {
    findings.push(failed(
      `${shown(foreign)}: not of the user who owns ${storage} (${folder.uid})`,
      `chown -R ${folder.uid}:${folder.gid} ${storage}, and run commands as that user`,
    ));
  }
  if (closed.length > 0) {
    findings.push(
      failed(`${shown(closed)}: closed to its owner`, "chmod -R u+rwX, with that path"),
    );
  }
  if (unreadable.length > 0) {
    findings.push(
      notChecked(`${shown(unreadable)}: not readable`, "run this as the user of larder"),
    );
  }
  for (const path of places.secrets) {
    const mode = modeOf(path);
    if (mode === undefined || (mode & OTHERS) === 0) continue;
    findings.push(warning(`${path}: every user may open it`, `chmod o-rwx ${path}`));
  }
  return findings.length > 0 ? findings : [ok(`${storage} and its files belong to one user`)];
}

interface PathProblems {
  /** Paths of another owner than the storage. */
  readonly foreign: readonly string[];
  /** Paths without rights of their owner. */
  readonly closed: readonly string[];
  readonly unreadable: readonly string[];
}

function lookAt(places: PermissionPlaces, storage: Deno.FileInfo): PathProblems {
  const problems = { foreign: [] as string[], closed: [] as string[], unreadable: [] as string[] };
  const all = [places.storage, ...places.written, ...places.sharded.flatMap(withSubfolders)];
  for (const path of new Set(all)) {
    try {
      const { uid, mode, isDirectory } = Deno.statSync(path);
      const needed = isDirectory ? OWNER_FOLDER : OWNER_FILE;
      if (uid !== storage.uid) problems.foreign.push(path);
      else if (mode !== null && (mode & needed) !== needed) problems.closed.push(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) problems.unreadable.push(path);
    }
  }
  return problems;
}

function withSubfolders(folder: string): readonly string[] {
  try {
    const names = [...Deno.readDirSync(folder)].filter(({ isDirectory }) => isDirectory);
    return [folder, ...names.map(({ name }) => `${folder}/${name}`)];
  } catch {
    // Its own look reports an unreadable one.
    return [folder];
  }
}

function modeOf(path: string): number | undefined {
  try {
    return Deno.statSync(path).mode ?? undefined;
  } catch {
    return undefined;
  }
}

function shown(paths: readonly string[]): string {
  const more = paths.length - SHOWN_MAX;
  return paths.slice(0, SHOWN_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
