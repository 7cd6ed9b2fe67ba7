import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Bytes } from "../../base/bytes.ts";
import { Failure, reasonOf } from "../../base/failure.ts";
import { formatBytes, formatMs } from "../../base/format_units.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import { clock } from "../../runtime/current.ts";

/** A file in a folder that another user writes. */
export interface ForeignPlace {
  /** The folder that it must be in, at any depth. */
  readonly folder: string;
  readonly path: string;
}

/** The very file, whatever its names. */
export interface FileIdentity {
  readonly dev: number;
  readonly ino: number | null;
}

/** The longest time for one access: a dead mount never answers. */
const ACCESS_MAX_MS = 30_000;

const READ_BYTES = 1 << 20;

/** The last component may not be a link. A FIFO that took the file's place must not wait. */
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * An open regular file of another user. Every access has a time limit, and ends with its signal.
 * Every access rejects with a Failure that names the path.
 */
export class ForeignFile implements AsyncDisposable {
  readonly place: ForeignPlace;
  /** Size at the time of opening: no further byte is read. */
  readonly fileSize: number;
  readonly changedAtMs: number;
  readonly identity: FileIdentity;
  readonly owner: number | null;
  readonly #handle: FileHandle;

  private constructor(place: ForeignPlace, handle: FileHandle, info: Deno.FileInfo) {
    this.place = place;
    this.#handle = handle;
    this.fileSize = info.size;
    this.changedAtMs = info.mtime?.getTime() ?? 0;
    this.identity = { dev: info.dev, ino: info.ino };
    this.owner = info.uid;
  }

  /** Rejects for anything but a regular file, and where a link leads out of the folder. */
  static async open(place: ForeignPlace, signal: AbortSignal): Promise<ForeignFile> {
    const { folder, path } = place;
    return await named(path, signal, async () => {
      const looks = [
        Deno.lstat(path),
        Deno.realPath(folder),
        Deno.realPath(dirname(path)),
      ] as const;
      const [info, root, parent] = await bounded(Promise.all(looks), signal);
      checkKind(info);
      checkInside(root, parent);
      const opening = open(path, FLAGS);
      const handle = await bounded(opening, signal).catch((error) => {
        // It may still open, after this gave it up.
        opening.then((late) => late.close()).catch(() => undefined);
        throw error;
      });
      try {
        const { dev, ino } = await bounded(handle.stat(), signal);
        if (dev !== info.dev || ino !== info.ino) throw new Error("it was replaced meanwhile");
        return new ForeignFile(place, handle, info);
      } catch (error) {
        await handle.close();
        throw error;
      }
    });
  }

  /** The bytes from `start` up to the size at opening. Each piece is a buffer of its own. */
  async *pieces(signal: AbortSignal, start = 0): AsyncGenerator<Bytes, void> {
    for (let at = start; at < this.fileSize;) {
      const bytes = new Uint8Array(Math.min(READ_BYTES, this.fileSize - at));
      const got = await this.#read(bytes, at, signal);
      if (got === 0) throw failureOf(this.place.path, new Error("it became shorter"));
      at += got;
      yield bytes.subarray(0, got);
    }
  }

  /** The first bytes, at most `bytesMax`. */
  async head(bytesMax: number, signal: AbortSignal): Promise<Bytes> {
    const bytes = new Uint8Array(Math.min(bytesMax, this.fileSize));
    let filled = 0;
    while (filled < bytes.length) {
      const got = await this.#read(bytes.subarray(filled), filled, signal);
      if (got === 0) break;
      filled += got;
    }
    return bytes.subarray(0, filled);
  }

  /** The whole text. Rejects for a file of more than `bytesMax`. */
  async text(bytesMax: number, signal: AbortSignal): Promise<string> {
    if (this.fileSize > bytesMax) {
      const limit = new Error(`it is larger than ${formatBytes(bytesMax)}`);
      throw failureOf(this.place.path, limit);
    }
    return new TextDecoder().decode(await this.head(bytesMax, signal));
  }

  /** True if `path` is a name of this very file, not a link to it. */
  isAt(path: string): boolean {
    return isSameFile(Deno.lstatSync(path), this.identity);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  async #read(into: Bytes, at: number, signal: AbortSignal): Promise<number> {
    return await named(this.place.path, signal, async () => {
      const { bytesRead } = await bounded(this.#handle.read(into, 0, into.length, at), signal);
      return bytesRead;
    });
  }
}

/** The whole text of a regular file of another user. */
export async function readForeignText(
  place: ForeignPlace,
  bytesMax: number,
  signal: AbortSignal,
): Promise<string> {
  await using file = await ForeignFile.open(place, signal);
  return await file.text(bytesMax, signal);
}

/**
 * Removes the name of a regular file within the folder. With an identity it removes that file
 * alone. A missing one is no error. Nothing else runs between the checks and the removal.
 */
export function removeForeign({ folder, path }: ForeignPlace, identity?: FileIdentity): void {
  try {
    const info = Deno.lstatSync(path);
    checkKind(info);
    checkInside(Deno.realPathSync(folder), Deno.realPathSync(dirname(path)));
    if (identity !== undefined && !isSameFile(info, identity)) {
      throw new Error("it was replaced meanwhile");
    }
    Deno.removeSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw new Failure("broken", `Cannot remove ${path}: ${reasonOf(error)}`, {}, error);
  }
}

/** Throws for anything but a regular file. */
export function checkKind(info: Deno.FileInfo): void {
  if (!info.isFile) throw new Error(`it is ${kindOf(info)}, not a regular file`);
}

function kindOf(info: Deno.FileInfo): string {
  if (info.isSymlink) return "a symbolic link";
  if (info.isDirectory) return "a folder";
  if (info.isFifo) return "a FIFO";
  if (info.isSocket) return "a socket";
  return "a device";
}

function checkInside(root: string, parent: string): void {
  const below = root.endsWith("/") ? root : `${root}/`;
  if (parent !== root && !parent.startsWith(below)) {
    throw new Error("a link in its path leads out of the folder");
  }
}

function isSameFile(one: FileIdentity, other: FileIdentity): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** The result of an access. Rejects after the time limit, or with the signal's reason. */
async function bounded<Value>(access: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const done = access.then((value) => ({ value }));
  const found = await clock.within(unlessAborted(done, signal), ACCESS_MAX_MS);
  if (found === undefined) throw new Error(`no answer within ${formatMs(ACCESS_MAX_MS)}`);
  return found.value;
}

async function named<Value>(
  path: string,
  signal: AbortSignal,
  access: () => Promise<Value>,
): Promise<Value> {
  try {
    return await access();
  } catch (error) {
    if (signal.aborted) throw error;
    throw failureOf(path, error);
  }
}

function failureOf(path: string, error: unknown): Failure {
  return new Failure("absent", `Cannot read ${path}: ${reasonOf(error)}`, {}, error);
}
