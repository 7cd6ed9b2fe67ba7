import { clock, dice } from "../../src/runtime/current.ts";
import type { FileFacts, Files, OpenFile } from "../../src/runtime/files.ts";

class Inode {
  readonly ino: number;
  bytes = new Uint8Array(0);
  size = 0;
  links = 1;
  changedAtMs = clock.wallMs();
  /** The bytes that a power cut leaves. */
  syncedSize = 0;

  constructor(ino: number) {
    this.ino = ino;
  }
}

export interface MemoryFilesOptions {
  /** All bytes that the disk has room for. */
  readonly capacityBytes: number;
}

/** A disk in memory. Every call is over at once; a full disk refuses what does not fit. */
export class MemoryFiles implements Files {
  capacityBytes: number;
  readonly #inodes = new Map<string, Inode>();
  readonly #folders = new Set(["/"]);
  readonly #open = new Set<MemoryFile>();
  #lastIno = 0;

  constructor({ capacityBytes }: MemoryFilesOptions) {
    this.capacityBytes = capacityBytes;
  }

  /** The bytes of all files below a folder. Another name of a file counts nothing. */
  bytesBelow(folder: string): number {
    const inodes = new Set(this.paths(folder).map((path) => this.#inodes.get(path)));
    return [...inodes].reduce((sum, inode) => sum + (inode?.size ?? 0), 0);
  }

  /** The paths of all files below a folder. */
  paths(folder: string): readonly string[] {
    return [...this.#inodes.keys()].filter((path) => path.startsWith(`${folder}/`));
  }

  /** The bytes of a file. */
  bytesOf(path: string): Uint8Array {
    const { bytes, size } = this.#inode(path);
    return bytes.subarray(0, size);
  }

  /** The paths of open files, those that were removed meanwhile included. */
  openPaths(): readonly string[] {
    return [...this.#open].map(({ path }) => path);
  }

  /** Files below `folder` lose bytes that were not synced, and nobody has them open any more. */
  crash(folder: string): void {
    for (const path of this.paths(folder)) {
      const inode = this.#inodes.get(path);
      if (inode !== undefined) inode.size = Math.max(inode.syncedSize, inode.size >> 1);
    }
    this.closeBelow(folder);
  }

  /** Closes what is open below `folder`, as the end of its process does. */
  closeBelow(folder: string): void {
    for (const file of this.#open) if (file.path.startsWith(`${folder}/`)) file.close();
  }

  /** Cuts a file to half of its size, as a damaged disk may. */
  damage(path: string): void {
    const inode = this.#inode(path);
    inode.size >>= 1;
    inode.changedAtMs = clock.wallMs() + 1;
  }

  openSync(path: string, options: Deno.OpenOptions = { read: true }): OpenFile {
    const { write = false, create = false, createNew = false, truncate = false } = options;
    const known = this.#inodes.get(path);
    if (known !== undefined && createNew) throw new Deno.errors.AlreadyExists(path);
    if (known === undefined && this.#folders.has(path)) {
      return this.#opened(path, new Inode(0));
    }
    if (known === undefined && !(write && (create || createNew))) {
      throw new Deno.errors.NotFound(`No such file or directory (os error 2): ${path}`);
    }
    const inode = known ?? this.#create(path);
    if (truncate) inode.size = inode.syncedSize = 0;
    return this.#opened(path, inode);
  }

  async open(path: string, options?: Deno.OpenOptions): Promise<OpenFile> {
    return this.openSync(path, options);
  }

  statSync(path: string): FileFacts {
    return factsOf(this.#folders.has(path) ? new Inode(0) : this.#inode(path));
  }

  async stat(path: string): Promise<FileFacts> {
    return this.statSync(path);
  }

  readDirSync(path: string): Iterable<{ readonly name: string }> {
    if (!this.#folders.has(path)) throw new Deno.errors.NotFound(path);
    const start = path === "/" ? 1 : path.length + 1;
    const names = [...this.#inodes.keys(), ...this.#folders]
      .filter((one) => one.startsWith(path === "/" ? "/" : `${path}/`))
      .map((one) => one.slice(start).split("/")[0] ?? "");
    return [...new Set(names)].filter((name) => name !== "").sort().map((name) => ({ name }));
  }

  mkdirSync(path: string, { recursive = false }: Deno.MkdirOptions = {}): void {
    if (this.#folders.has(path)) {
      if (recursive) return;
      throw new Deno.errors.AlreadyExists(path);
    }
    const parent = parentOf(path);
    if (!this.#folders.has(parent)) {
      if (!recursive) throw new Deno.errors.NotFound(parent);
      this.mkdirSync(parent, { recursive });
    }
    this.#folders.add(path);
  }

  async mkdir(path: string, options?: Deno.MkdirOptions): Promise<void> {
    this.mkdirSync(path, options);
  }

  makeTempFileSync({ dir = "/tmp", prefix = "", suffix = "" }: Deno.MakeTempOptions): string {
    const path = `${dir}/${prefix}${dice.uuid().slice(0, 8)}${suffix}`;
    this.#create(path);
    return path;
  }

  renameSync(from: string, to: string): void {
    if (this.#folders.has(from)) return this.#renameFolder(from, to);
    const inode = this.#inode(from);
    this.#checkParent(to);
    this.#inodes.delete(from);
    this.#inodes.set(to, inode);
  }

  async rename(from: string, to: string): Promise<void> {
    this.renameSync(from, to);
  }

  linkSync(from: string, to: string): void {
    const inode = this.#inode(from);
    if (this.#inodes.has(to)) throw new Deno.errors.AlreadyExists(to);
    this.#checkParent(to);
    inode.links++;
    this.#inodes.set(to, inode);
  }

  async link(from: string, to: string): Promise<void> {
    this.linkSync(from, to);
  }

  async copyFile(from: string, to: string): Promise<void> {
    const { bytes, size } = this.#inode(from);
    this.#reserve(size);
    const inode = this.#create(to);
    inode.bytes = bytes.slice(0, size);
    inode.size = size;
  }

  removeSync(path: string, { recursive = false }: Deno.RemoveOptions = {}): void {
    const inode = this.#inodes.get(path);
    if (inode !== undefined) {
      inode.links--;
      this.#inodes.delete(path);
      return;
    }
    if (!this.#folders.has(path)) throw new Deno.errors.NotFound(path);
    const below = this.paths(path);
    if (below.length > 0 && !recursive) throw new Error("Directory not empty (os error 39)");
    for (const file of below) this.removeSync(file);
    for (const folder of this.#folders) {
      if (folder === path || folder.startsWith(`${path}/`)) this.#folders.delete(folder);
    }
  }

  async remove(path: string, options?: Deno.RemoveOptions): Promise<void> {
    this.removeSync(path, options);
  }

  async readTextFile(path: string): Promise<string> {
    const { bytes, size } = this.#inode(path);
    return new TextDecoder().decode(bytes.subarray(0, size));
  }

  async writeTextFile(path: string, text: string, options: Deno.WriteFileOptions = {}) {
    using file = this.openSync(path, { write: true, create: true, truncate: true, ...options });
    file.writeSync(new TextEncoder().encode(text));
  }

  async room(): Promise<{ freeBytes: number; totalBytes: number; files: undefined }> {
    const freeBytes = this.capacityBytes - this.#usedBytes();
    return { freeBytes, totalBytes: this.capacityBytes, files: undefined };
  }

  #usedBytes(): number {
    const inodes = new Set([...this.#inodes.values(), ...[...this.#open].map((one) => one.inode)]);
    return [...inodes].reduce((sum, { size }) => sum + size, 0);
  }

  /** Throws where so many more bytes have no room. */
  #reserve(bytes: number): void {
    if (this.#usedBytes() + bytes <= this.capacityBytes) return;
    throw Object.assign(new Error("No space left on device (os error 28)"), { code: "ENOSPC" });
  }

  #opened(path: string, inode: Inode): OpenFile {
    const file = new MemoryFile(path, inode, {
      reserve: (bytes) => this.#reserve(bytes),
      closed: () => this.#open.delete(file),
    });
    this.#open.add(file);
    return file;
  }

  #create(path: string): Inode {
    this.#checkParent(path);
    const inode = new Inode(++this.#lastIno);
    this.#inodes.set(path, inode);
    return inode;
  }

  #inode(path: string): Inode {
    const inode = this.#inodes.get(path);
    if (inode !== undefined) return inode;
    throw new Deno.errors.NotFound(`No such file or directory (os error 2): ${path}`);
  }

  #checkParent(path: string): void {
    const parent = parentOf(path);
    if (!this.#folders.has(parent)) throw new Deno.errors.NotFound(parent);
  }

  #renameFolder(from: string, to: string): void {
    for (const path of this.paths(from)) {
      const inode = this.#inode(path);
      this.#inodes.delete(path);
      this.#inodes.set(to + path.slice(from.length), inode);
    }
    for (const folder of [...this.#folders]) {
      if (folder !== from && !folder.startsWith(`${from}/`)) continue;
      this.#folders.delete(folder);
      this.#folders.add(to + folder.slice(from.length));
    }
  }
}

interface Disk {
  readonly reserve: (bytes: number) => void;
  readonly closed: () => void;
}

class MemoryFile implements OpenFile {
  readonly path: string;
  readonly inode: Inode;
  readonly #disk: Disk;
  #position = 0;
  #isClosed = false;

  constructor(path: string, inode: Inode, disk: Disk) {
    this.path = path;
    this.inode = inode;
    this.#disk = disk;
  }

  readSync(into: Uint8Array): number | null {
    this.#check();
    const { bytes, size } = this.inode;
    if (this.#position >= size) return null;
    const piece = bytes.subarray(this.#position, Math.min(size, this.#position + into.length));
    into.set(piece);
    this.#position += piece.length;
    return piece.length;
  }

  async read(into: Uint8Array): Promise<number | null> {
    return this.readSync(into);
  }

  writeSync(from: Uint8Array): number {
    this.#check();
    const { inode } = this;
    const end = this.#position + from.length;
    if (end > inode.size) this.#disk.reserve(end - inode.size);
    if (end > inode.bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * inode.bytes.length));
      grown.set(inode.bytes);
      inode.bytes = grown;
    }
    inode.bytes.set(from, this.#position);
    inode.size = Math.max(inode.size, end);
    inode.changedAtMs = clock.wallMs();
    this.#position = end;
    return from.length;
  }

  async write(from: Uint8Array): Promise<number> {
    return this.writeSync(from);
  }

  seekSync(offset: number, whence: Deno.SeekMode): number {
    this.#check();
    if (whence === Deno.SeekMode.Start) this.#position = offset;
    else if (whence === Deno.SeekMode.Current) this.#position += offset;
    else this.#position = this.inode.size + offset;
    return this.#position;
  }

  statSync(): FileFacts {
    this.#check();
    return factsOf(this.inode);
  }

  async sync(): Promise<void> {
    this.#check();
    this.inode.syncedSize = this.inode.size;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#disk.closed();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #check(): void {
    if (this.#isClosed) throw new Deno.errors.BadResource("Bad resource ID");
  }
}

function factsOf({ ino, size, links, changedAtMs }: Inode): FileFacts {
  const changed = new Date(changedAtMs);
  const facts = { dev: 1, ino, size, nlink: links, mtime: changed, ctime: changed, isFile: true };
  return facts as unknown as FileFacts;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
