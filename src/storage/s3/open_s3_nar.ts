import { GetObjectCommand } from "@aws-sdk/client-s3";
import { Failure } from "../../base/failure.ts";
import { formatMs } from "../../base/format_units.ts";
import { streamFrom } from "../../base/stream_of.ts";
import type { Seal } from "../../nix/stored_name.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { ReadOptions, StoredNar } from "../nar_store.ts";
import type { S3Access } from "./s3_access.ts";
import { isChanged, isNotFound, s3Failure } from "./s3_failures.ts";
import type { S3Object } from "./s3_object.ts";
import type { Bytes } from "../../base/bytes.ts";

/** Maximum breaks in a row, without a byte between them, before a read ends. */
const BREAKS_MAX = 3;

/** The longest pause after the first break; each further one doubles it. */
const PAUSE_MS = 200;

/** The longest wait for the next bytes of a body. */
const IDLE_MAX_MS = 10_000;

/** An object that was found, handed out as a NAR. Nothing is open between reads. */
export class OpenS3Nar implements StoredNar {
  readonly fileSize: number;
  readonly seal: Seal;
  readonly #s3: S3Access;
  readonly #object: S3Object;

  constructor(s3: S3Access, object: S3Object) {
    this.#s3 = s3;
    this.#object = object;
    this.fileSize = object.fileSize;
    this.seal = object.seal;
  }

  async bytes(options: ReadOptions = {}): Promise<Bytes> {
    const bytes = new Uint8Array(this.fileSize);
    const range = this.#range(0, this.fileSize, options);
    let filled = 0;
    for (let piece = await range.next(); piece !== undefined; piece = await range.next()) {
      bytes.set(piece, filled);
      filled += piece.length;
    }
    return bytes;
  }

  read(start: number, end: number, options: ReadOptions = {}): ReadableStream<Bytes> {
    const range = this.#range(start, end, options);
    return streamFrom({ next: () => range.next(), cancel: () => range.close() });
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #range(start: number, end: number, { signal }: ReadOptions): ObjectRange {
    return new ObjectRange(this.#s3, this.#object, { start, end, signal });
  }
}

interface RangeOrder {
  readonly start: number;
  readonly end: number;
  readonly signal: AbortSignal | undefined;
}

/** A part of one object. After a break it asks for the rest, of the very same bytes. */
class ObjectRange {
  readonly #s3: S3Access;
  readonly #object: S3Object;
  readonly #end: number;
  readonly #signal: AbortSignal | undefined;
  #at: number;
  #body: ReadableStreamDefaultReader<Bytes> | undefined;

  constructor(s3: S3Access, object: S3Object, { start, end, signal }: RangeOrder) {
    this.#s3 = s3;
    this.#object = object;
    this.#at = start;
    this.#end = end;
    this.#signal = signal;
  }

  /** `undefined` at the end. Throws where bytes are missing, or are others. */
  async next(): Promise<Bytes | undefined> {
    for (let breaks = 0;;) {
      try {
        this.#signal?.throwIfAborted();
        if (this.#at === this.#end) return void this.close();
        this.#body ??= await this.#open();
        return await this.#piece(this.#body);
      } catch (error) {
        this.#leave(error);
        this.#signal?.throwIfAborted();
        if (isFinal(error) || ++breaks > BREAKS_MAX) throw s3Failure("read NAR file", error);
        await clock.pause(dice.fraction() * PAUSE_MS * 2 ** breaks, this.#signal);
      }
    }
  }

  /** The reader has enough. */
  readonly close = () => this.#leave();

  /** `failure`: why no more of this body is read. */
  #leave(failure?: unknown): void {
    this.#signal?.removeEventListener("abort", this.close);
    // A broken body rejects, and there is nothing to end.
    this.#body?.cancel(failure).catch(() => undefined);
    this.#body = undefined;
  }

  async #open(): Promise<ReadableStreamDefaultReader<Bytes>> {
    const { client, bucket } = this.#s3;
    const { key, etag } = this.#object;
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      Range: `bytes=${this.#at}-${this.#end - 1}`,
      IfMatch: etag,
    });
    const options = this.#signal === undefined ? {} : { abortSignal: this.#signal };
    const { Body, ETag, ContentRange } = await client.send(command, options);
    const body: ReadableStreamDefaultReader<Bytes> | undefined = Body?.transformToWebStream()
      .getReader();
    if (body === undefined) throw new Error("the S3 store sent no body");
    this.#signal?.addEventListener("abort", this.close);
    this.#body = body;
    if (ETag !== etag || ContentRange !== this.#contentRange()) throw otherBytes();
    return body;
  }

  #contentRange(): string {
    return `bytes ${this.#at}-${this.#end - 1}/${this.#object.fileSize}`;
  }

  async #piece(body: ReadableStreamDefaultReader<Bytes>): Promise<Bytes> {
    for (;;) {
      const read = await clock.within(body.read(), IDLE_MAX_MS);
      if (read === undefined) throw new Error(`no byte came for ${formatMs(IDLE_MAX_MS)}`);
      if (read.done) throw new Error("the body ended early");
      if (read.value.length === 0) continue;
      this.#at += read.value.length;
      if (this.#at > this.#end) throw otherBytes();
      return read.value;
    }
  }
}

/** True where asking again cannot help: the object was removed, or is another one. */
function isFinal(error: unknown): boolean {
  return isNotFound(error) || isChanged(error) || error instanceof Failure;
}

function otherBytes(): Failure {
  return new Failure("broken", "Cannot read NAR file: the S3 store sent other bytes");
}
