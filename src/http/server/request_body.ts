import type { Bytes } from "../../base/bytes.ts";
import { streamFrom } from "../../base/stream_of.ts";
import type { RequestReader } from "./request_reader.ts";
import { Refusal } from "./refusal.ts";
import { isField } from "./request_head.ts";

const CHUNK_LINE_REGEXP = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t -~]*)?$/;
const CHUNK_LINE_LENGTH_MAX = 256;
const TRAILER_LENGTH_MAX = 1024;
const TRAILERS_MAX = 16;

/** The body of a request, read from the connection on demand. */
export class RequestBody {
  readonly #requestReader: RequestReader;
  readonly #isChunked: boolean;
  /** Called before the first read, for clients that wait for 100 Continue. */
  readonly #begin: () => Promise<void>;
  /** Bytes left of the body, or of the present chunk. */
  #left: number;
  #isOver: boolean;
  #hasBegun = false;

  constructor(
    requestReader: RequestReader,
    length: number | "chunked",
    begin: () => Promise<void>,
  ) {
    this.#requestReader = requestReader;
    this.#isChunked = length === "chunked";
    this.#left = length === "chunked" ? 0 : length;
    this.#isOver = length === 0;
    this.#begin = begin;
  }

  /** True if the connection's next byte is behind this body. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True once the app has read from it. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Discards the rest, up to `bytesMax`; false if there is more. */
  async skip(bytesMax: number): Promise<boolean> {
    for (let skipped = 0; !this.#isOver && skipped <= bytesMax;) {
      skipped += (await this.read())?.length ?? 0;
    }
    return this.#isOver;
  }

  /** The next bytes; `undefined` at the end. Throws a Refusal for bad framing. */
  async read(): Promise<Bytes | undefined> {
    if (this.#isOver) return undefined;
    if (!this.#hasBegun) await this.#begin();
    this.#hasBegun = true;
    if (this.#left === 0 && !await this.#nextChunk()) return undefined;
    const bytes = await this.#requestReader.some(this.#left);
    this.#left -= bytes.length;
    if (this.#left === 0) await this.#endOfPart();
    return bytes;
  }

  stream(): ReadableStream<Bytes> {
    return streamFrom({
      next: async () => {
        const bytes = await this.read();
        // From here on the client waits for the app, not the app for the client.
        this.#requestReader.handedOver();
        return bytes;
      },
    });
  }

  async #endOfPart(): Promise<void> {
    if (!this.#isChunked) this.#isOver = true;
    else if (await this.#requestReader.line(0) !== "") {
      throw new Refusal(400, "chunk longer than its size");
    }
  }

  /** False after the last chunk. */
  async #nextChunk(): Promise<boolean> {
    const line = await this.#requestReader.line(CHUNK_LINE_LENGTH_MAX);
    const [, size] = CHUNK_LINE_REGEXP.exec(line) ?? [];
    if (size === undefined) throw new Refusal(400, "invalid chunk size");
    this.#left = parseInt(size, 16);
    if (this.#left > 0) return true;
    await this.#skipTrailers();
    this.#isOver = true;
    return false;
  }

  /** Discards trailers. Another server could read a malformed one as the next request. */
  async #skipTrailers(): Promise<void> {
    for (let count = 0;; count++) {
      const line = await this.#requestReader.line(TRAILER_LENGTH_MAX);
      if (line === "") return;
      if (!isField(line)) throw new Refusal(400, "malformed trailer");
      if (count >= TRAILERS_MAX) throw new Refusal(400, "too many trailers");
    }
  }
}
