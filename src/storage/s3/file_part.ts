import { createHash } from "node:crypto";
import { Failure } from "../../base/failure.ts";
import { readFully } from "../../base/files.ts";
import { streamFrom } from "../../base/stream_of.ts";
import type { Bytes } from "../../base/bytes.ts";

const READ_BYTES = 256 * 1024;

type OpenFile = Pick<Deno.FsFile, "seekSync" | "readSync">;

/**
 * A part of an open file, as the body of a request. Each try reads the file anew. Deno makes two
 * copies of a body of bytes, and V8 frees them late; of this one it holds a few pieces.
 */
export class FilePart extends Blob {
  readonly #file: OpenFile;
  readonly #start: number;
  readonly #end: number;

  constructor(file: OpenFile, start: number, end: number) {
    super();
    this.#file = file;
    this.#start = start;
    this.#end = end;
  }

  override get size(): number {
    return this.#end - this.#start;
  }

  override stream(): ReadableStream<Bytes> {
    let at = this.#start;
    return streamFrom({
      next: async () => {
        if (at === this.#end) return undefined;
        const piece = new Uint8Array(Math.min(READ_BYTES, this.#end - at));
        this.#read(piece, at);
        at += piece.length;
        return piece;
      },
    });
  }

  /** Its SHA-256 in hex. */
  sha256(): string {
    const hash = createHash("sha256");
    const buffer = new Uint8Array(Math.min(READ_BYTES, this.size));
    for (let at = this.#start; at < this.#end; at += buffer.length) {
      const piece = buffer.subarray(0, this.#end - at);
      this.#read(piece, at);
      hash.update(piece);
    }
    return hash.digest("hex");
  }

  /** Reads at once: the parts of a file share its position. */
  #read(piece: Bytes, at: number): void {
    this.#file.seekSync(at, Deno.SeekMode.Start);
    if (readFully(this.#file, piece) === piece.length) return;
    throw new Failure("broken", "Cannot write NAR file: it became shorter");
  }
}

/** Adds the hash of a file to its request. The SDK hashes bytes alone, and then signs the hash. */
export function addFileHash(request: unknown): void {
  if (hasFilePart(request)) request.headers["x-amz-content-sha256"] = request.body.sha256();
}

interface FileRequest {
  readonly body: FilePart;
  readonly headers: Record<string, string>;
}

function hasFilePart(request: unknown): request is FileRequest {
  return (request as Partial<FileRequest>).body instanceof FilePart;
}
