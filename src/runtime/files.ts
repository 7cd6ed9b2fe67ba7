import { statfs } from "node:fs/promises";
import { hasSystemPermission } from "./system_permission.ts";

/** What `stat` says of a file or a folder. */
export type FileFacts = Deno.FileInfo;

/** An open file. Disposing of it closes it. */
export interface OpenFile extends Disposable {
  /** The bytes read from its position; `null` at its end. */
  readSync(into: Uint8Array): number | null;
  read(into: Uint8Array): Promise<number | null>;
  /** The bytes written at its position: some of `from`, or all. */
  writeSync(from: Uint8Array): number;
  write(from: Uint8Array): Promise<number>;
  seekSync(offset: number, whence: Deno.SeekMode): number;
  statSync(): FileFacts;
  /** Resolves when a power cut leaves its bytes whole. */
  sync(): Promise<void>;
  close(): void;
}

/**
 * The file system: the calls of Deno that larder uses for spool, partial files and stored objects.
 * They throw the errors of Deno.
 */
export interface Files {
  openSync(path: string, options?: Deno.OpenOptions): OpenFile;
  open(path: string, options?: Deno.OpenOptions): Promise<OpenFile>;
  statSync(path: string): FileFacts;
  stat(path: string): Promise<FileFacts>;
  readDirSync(path: string): Iterable<{ readonly name: string }>;
  mkdirSync(path: string, options?: Deno.MkdirOptions): void;
  mkdir(path: string, options?: Deno.MkdirOptions): Promise<void>;
  makeTempFileSync(options: Deno.MakeTempOptions): string;
  renameSync(from: string, to: string): void;
  rename(from: string, to: string): Promise<void>;
  linkSync(from: string, to: string): void;
  link(from: string, to: string): Promise<void>;
  copyFile(from: string, to: string): Promise<void>;
  removeSync(path: string, options?: Deno.RemoveOptions): void;
  remove(path: string, options?: Deno.RemoveOptions): Promise<void>;
  readTextFile(path: string): Promise<string>;
  writeTextFile(path: string, text: string, options?: Deno.WriteFileOptions): Promise<void>;
  /** The room of the file system of `path`. Throws where that is unknown. */
  room(path: string): Promise<DiskRoom>;
}

/** The room of a file system. */
export interface DiskRoom {
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** `undefined`: the file system has no fixed number of files, as with btrfs. */
  readonly files: { readonly free: number; readonly total: number } | undefined;
}

/** The file system of this machine. */
export const SYSTEM_FILES: Files = {
  openSync: Deno.openSync,
  open: Deno.open,
  statSync: Deno.statSync,
  stat: Deno.stat,
  readDirSync: Deno.readDirSync,
  mkdirSync: Deno.mkdirSync,
  mkdir: Deno.mkdir,
  makeTempFileSync: Deno.makeTempFileSync,
  renameSync: Deno.renameSync,
  rename: Deno.rename,
  linkSync: Deno.linkSync,
  link: Deno.link,
  copyFile: Deno.copyFile,
  removeSync: Deno.removeSync,
  remove: Deno.remove,
  readTextFile: Deno.readTextFile,
  writeTextFile: Deno.writeTextFile,
  room: roomOf,
};

async function roomOf(path: string): Promise<DiskRoom> {
  if (!hasSystemPermission("statfs")) throw new Error("--allow-sys=statfs is not given");
  const { bavail, blocks, bsize, ffree, files } = await statfs(path);
  return {
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    files: files > 0 ? { free: ffree, total: files } : undefined,
  };
}
