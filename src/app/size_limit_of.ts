import type { Settings } from "../config/options.ts";
import { files } from "../runtime/current.ts";
import { SizeLimit, type StorageDisk } from "../space/size_limit.ts";
import { type Folders, storePlaces } from "./folders.ts";

/** How often a limit that comes from the disk follows it. */
export const LOOK_AT_DISK_EVERY_MS = 60_000;

/** The limit that the settings ask for. */
export function sizeLimitOf(settings: Settings, { temp }: Pick<Folders, "temp">): SizeLimit {
  const order = settings["cache.max-size"];
  if (order === "unlimited") return SizeLimit.of(Infinity);
  const { nars } = storePlaces(settings);
  if (order !== "auto") return SizeLimit.of(order, nars.kind === "s3");
  return nars.kind === "s3" ? SizeLimit.ofBucket() : SizeLimit.ofDisk(diskOf(nars.folder, temp));
}

function diskOf(folder: string, temp: string): StorageDisk {
  return {
    room: () => files.room(folder),
    // A partial file elsewhere takes no room here.
    partialBytes: () => isOneDisk(folder, temp) ? bytesIn(temp) : 0,
  };
}

function isOneDisk(a: string, b: string): boolean {
  return files.statSync(a).dev === files.statSync(b).dev;
}

/** Bytes of the files in the folders of `base`: each member has one for its partial files. */
function bytesIn(base: string): number {
  return namesIn(base).flatMap((member) =>
    namesIn(`${base}/${member}`).map((name) => [member, name])
  )
    .reduce((sum, [member, name]) => sum + sizeOf(`${base}/${member}/${name}`), 0);
}

/** Nothing where it is no folder, or ended meanwhile. */
function namesIn(folder: string): readonly string[] {
  try {
    return [...files.readDirSync(folder)].map(({ name }) => name);
  } catch {
    return [];
  }
}

function sizeOf(path: string): number {
  try {
    return files.statSync(path).size;
  } catch {
    return 0;
  }
}
