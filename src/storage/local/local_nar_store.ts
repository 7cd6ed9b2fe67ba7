import { dirname } from "node:path";
import type { Bytes } from "../../base/bytes.ts";
import { type BufferLender, DirectStream } from "../../base/direct_stream.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { fileBytes, readFully } from "../../base/files.ts";
import { parseStoredName, type Seal, type StoredName } from "../../nix/stored_name.ts";
import { clock, files } from "../../runtime/current.ts";
import type { FileFacts, OpenFile } from "../../runtime/files.ts";
import type {
  ListedNar,
  ListOptions,
  NarStore,
  OpenOptions,
  ReadOptions,
  StoredNar,
} from "../nar_store.ts";
import { moveDurably } from "./durable_move.ts";

/** NAR files below one folder: `<folder>/<first two characters>/<stored name>`. */
export class LocalNarStore implements NarStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(at: StoredName, { signal }: OpenOptions): Promise<StoredNar | undefined> {
    signal.throwIfAborted();
    try {
      return new OpenNarFile(files.openSync(this.#pathOf(at)));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw new Failure(
        "broken",
        `Cannot open NAR file: ${messageOf(error)}`,
        { nar: at },
        error,
      );
    }
  }

  async put(at: StoredName, path: string): Promise<Seal> {
    const to = this.#pathOf(at);
    // Synchronous: folders and facts in memory take 1 to 3 µs, waiting for another thread 20 to 60.
    files.mkdirSync(dirname(to), { recursive: true });
    await moveDurably(path, to);
    return sealOf(files.statSync(to));
  }

  async remove(at: StoredName): Promise<boolean> {
    try {
      await files.remove(this.#pathOf(at));
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  }

  async *list(prefix: string, { sizes = false }: ListOptions = {}): AsyncIterable<ListedNar> {
    for (const shard of this.#shardsOf(prefix)) {
      for (const name of namesIn(`${this.#folder}/${shard}`)) {
        const at = parseStoredName(name);
        if (at === undefined || !at.startsWith(prefix)) continue;
        if (!sizes) yield { at };
        // Synchronous: 8 µs; waiting for each takes 50.
        const fileSize = sizes ? fileBytes(this.#pathOf(at)) : undefined;
        // A file that goes meanwhile is no longer stored.
        if (fileSize !== undefined) yield { at, fileSize };
      }
    }
  }

  /** Names of the folders that may hold names with that prefix. */
  #shardsOf(prefix: string): readonly string[] {
    if (prefix.length >= SHARD_LENGTH) return [prefix.slice(0, SHARD_LENGTH)];
    // Others are not larder's, such as `lost+found`.
    return namesIn(this.#folder)
      .filter((shard) => shard.length === SHARD_LENGTH && shard.startsWith(prefix));
  }

  #pathOf(at: StoredName): string {
    return `${this.#folder}/${narPathOf(at)}`;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return [...files.readDirSync(folder)].map(({ name }) => name);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

/** A shard that no file needed yet is not an error; anything else is. */
function isAbsent(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
}

/** Read size of large files: measured as the fastest on Deno 2.6.8 (64 KiB halves it). */
const READ_BYTES = 256 * 1024;

/** An open file handed out as a NAR. */
export class OpenNarFile implements StoredNar {
  readonly fileSize: number;
  readonly seal: Seal;
  readonly unsettledMs: number;
  readonly #file: OpenFile;
  #open = true;
  #signal: AbortSignal | undefined;

  constructor(file: OpenFile) {
    this.#file = file;
    const info = file.statSync();
    this.fileSize = info.size;
    this.seal = sealOf(info);
    this.unsettledMs = unsettledMsOf(info, clock.wallMs());
  }

  /** Reads synchronously: a hop to another thread costs more than the copy of a small file. */
  async bytes({ signal }: ReadOptions = {}): Promise<Bytes> {
    try {
      signal?.throwIfAborted();
      const bytes = new Uint8Array(this.fileSize);
      if (readFully(this.#file, bytes) < bytes.length) throw shortFile();
      if (!this.#isSealed()) throw new Failure("broken", "Cannot read NAR file: it was changed");
      return bytes;
    } finally {
      this.#close();
    }
  }

  read(start: number, end: number, { signal }: ReadOptions = {}): DirectStream {
    let left = end - start;
    if (start > 0) this.#file.seekSync(start, Deno.SeekMode.Start);
    this.#endWith(signal);
    const read = async (lend: BufferLender) => {
      if (left === 0) return 0;
      signal?.throwIfAborted();
      const into = lend(left);
      const got = await this.#file.read(left < into.length ? into.subarray(0, left) : into);
      if (got === null) throw shortFile();
      left -= got;
      return got;
    };
    const rewind = (byteLength: number) => {
      left += byteLength;
      this.#file.seekSync(-byteLength, Deno.SeekMode.Current);
    };
    return new DirectStream({ read, rewind, close: () => this.#close() }, READ_BYTES);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }

  /** True while the file is the one of the seal. Its removal changes its times, no bytes. */
  #isSealed(): boolean {
    const info = this.#file.statSync();
    return info.nlink === 0 || sealOf(info) === this.seal;
  }

  #endWith(signal: AbortSignal | undefined): void {
    if (signal?.aborted) this.#close();
    this.#signal = signal;
    signal?.addEventListener("abort", this.#close);
  }

  readonly #close = () => {
    if (this.#open) this.#file.close();
    this.#open = false;
    this.#signal?.removeEventListener("abort", this.#close);
  };
}

function shortFile(): Failure {
  return new Failure("broken", "Cannot read NAR file: it became shorter while it was read");
}

/**
 * The identity of a file, and of its last change. Deno gives two times: the last write in
 * milliseconds, and the last change of any kind (ctime), which no program can set, in seconds.
 */
export function sealOf({ ino, size, mtime, ctime }: FileFacts): Seal {
  const times = `${mtime?.getTime() ?? 0}-${ctime?.getTime() ?? 0}`;
  return `${ino ?? 0}-${size}-${times}` as Seal;
}

/**
 * Time from a ctime's second until each change has another ctime. It is twice as long as that
 * second, for file systems with coarser clocks.
 */
const SETTLES_IN_MS = 2_000;

/**
 * How long a change of the file may still leave its seal as it is: its writer can set the time of
 * the write. A wait of the longest time is enough even where the file system's clock is ahead.
 */
export function unsettledMsOf({ ctime }: Pick<Deno.FileInfo, "ctime">, nowMs: number): number {
  const settlesAtMs = (ctime?.getTime() ?? 0) + SETTLES_IN_MS;
  return Math.min(SETTLES_IN_MS, Math.max(0, settlesAtMs - nowMs));
}

/** How many leading characters of the hash name a subfolder: 1,024 folders. */
const SHARD_LENGTH = 2;

/** The path of a stored object in the folder of NAR files. */
export function narPathOf(at: StoredName): string {
  return `${at.slice(0, SHARD_LENGTH)}/${at}`;
}
