import { DirectStream } from "../../base/direct_stream.ts";
import { Failure } from "../../base/failure.ts";
import { readFully } from "../../base/read_fully.ts";
import { type FileIdentity, isSameIdentity, type StoredNar } from "../nar_store.ts";
import { identityOf } from "./file_identity.ts";

/** Read size of large files: measured as the fastest on Deno 2.6.8 (64 KiB halves it). */
const READ_BYTES = 256 * 1024;

/** An open file handed out as a NAR. */
export class OpenNarFile implements StoredNar {
  readonly identity: FileIdentity;
  readonly #file: Deno.FsFile;
  #open = true;

  constructor(file: Deno.FsFile) {
    this.#file = file;
    this.identity = identityOf(file.statSync());
  }

  get fileSize(): number {
    return this.identity.fileSize;
  }

  isUnchanged(): boolean {
    return isSameIdentity(this.identity, identityOf(this.#file.statSync()));
  }

  bytes(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.fileSize);
    this.#file.seekSync(0, Deno.SeekMode.Start);
    if (readFully(this.#file, bytes) < bytes.length) throw shortFile();
    return bytes;
  }

  read(start: number, end: number): DirectStream {
    let left = end - start;
    if (start > 0) this.#file.seekSync(start, Deno.SeekMode.Start);
    const read = async (into: Uint8Array<ArrayBuffer>) => {
      if (left === 0) return 0;
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

  [Symbol.dispose](): void {
    this.#close();
  }

  #close(): void {
    if (this.#open) this.#file.close();
    this.#open = false;
  }
}

function shortFile(): Failure {
  return new Failure("broken", "Cannot read NAR file: it became shorter while it was read");
}
