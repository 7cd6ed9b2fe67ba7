import { ByteBlocks } from "../../base/byte_blocks.ts";
import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { PieceReader } from "../../base/piece_reader.ts";
import { wholeNumber } from "../../base/plain_number.ts";
import { type Codec, codecOfMagic, parseContentEncoding } from "../../nix/content_encoding.ts";
import type { DocumentPath } from "../../nix/document_name.ts";
import { clock } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import type { DocumentAnswer, DocumentBody, DocumentSource } from "../upstream.ts";
import {
  failedReading,
  type HttpUpstreamSettings,
  NO_UPSTREAM_TRACE,
  readRefusal,
  UpstreamFetch,
  UpstreamTimeout,
  type UpstreamTrace,
} from "./upstream_fetch.ts";
import { unknownEncoding } from "./http_narinfo_source.ts";

/** Read as part of the answer, under its timeouts: nearly all documents are smaller. */
const FIRST_BYTES = 64 * 1024;

/**
 * Time between two pieces of 64 KiB of a document without a length. `fetch` decodes gzip and br on
 * the thread that reads, which answers clients too, and drops the length. 256 KB of a bomb took it
 * 4 s (measured, 2.6.8).
 */
const GAP_MS = 4;

/** The names of an unknown encoding that may go on to a client. */
const ENCODING_REGEXP = /^[a-z0-9-]{1,16}(?:, ?[a-z0-9-]{1,16})*$/;

export interface HttpDocumentSourceDeps {
  readonly settings: HttpUpstreamSettings;
  readonly client: HttpClient;
  readonly trace?: UpstreamTrace | undefined;
}

/** The documents of a binary cache behind HTTP. */
export class HttpDocumentSource implements DocumentSource {
  readonly url: string;
  readonly #fetch: UpstreamFetch;
  readonly #idleTimeoutMs: number;
  readonly #gaps = new Gaps();

  readonly #trace: UpstreamTrace;

  constructor({ settings, client, trace = NO_UPSTREAM_TRACE }: HttpDocumentSourceDeps) {
    this.url = settings.url;
    this.#trace = trace;
    this.#fetch = new UpstreamFetch(settings, client);
    this.#idleTimeoutMs = settings.idleTimeoutMs;
  }

  async openDocument(path: DocumentPath, signal: AbortSignal): Promise<DocumentAnswer> {
    try {
      const { answered } = this.#trace;
      const options = { headers: this.#trace.headers(), signal, answered };
      return await this.#fetch.run(`${this.url}/${path}`, options, async (response) => {
        if (response.status !== 200) return await readRefusal(response);
        const header = response.headers.get("content-encoding")?.toLowerCase() ?? "";
        const encoding = parseContentEncoding(header);
        if (encoding.kind === "known") {
          const { codecs } = encoding;
          const name = codecs.length > 0 ? codecs.join(", ") : undefined;
          return { kind: "found", body: await this.#begin(response, { name, codecs }) };
        }
        if (ENCODING_REGEXP.test(header)) {
          return { kind: "found", body: await this.#begin(response, { name: header, codecs: [] }) };
        }
        await response.body?.cancel();
        return unknownEncoding(encoding.name);
      });
    } catch (error) {
      return failedReading(error);
    }
  }

  async #begin({ headers, body }: Response, { name, codecs }: Encoding): Promise<DocumentBody> {
    const length = headers.get("content-length") ?? "";
    const first = new ByteBlocks();
    let rest = body === null ? undefined : new PieceReader(body);
    while (rest !== undefined && first.byteLength < FIRST_BYTES) {
      const piece = await rest.read();
      if (piece === undefined) rest = undefined;
      else first.add(piece);
    }
    return {
      encoding: name,
      codecs: name === undefined ? codecOfMagic(first.beginning) : codecs,
      bodyBytes: wholeNumber(length),
      framed: length !== "" || headers.has("transfer-encoding"),
      ...bodyOf({
        ...{ first, rest, idleTimeoutMs: this.#idleTimeoutMs },
        gaps: length === "" ? this.#gaps : undefined,
      }),
    };
  }
}

interface Encoding {
  readonly name: string | undefined;
  readonly codecs: readonly Codec[];
}

interface BodyParts {
  readonly first: ByteBlocks;
  readonly rest: PieceReader | undefined;
  readonly idleTimeoutMs: number;
  /** Behind each piece of the rest; `undefined`: none. */
  readonly gaps: Gaps | undefined;
}

/** Gaps that all documents of an upstream share. */
class Gaps {
  #nextAtMs = -Infinity;

  /** Resolves when the next piece may be read. */
  async behind({ length }: Bytes): Promise<void> {
    const nowMs = clock.nowMs();
    this.#nextAtMs = Math.max(nowMs, this.#nextAtMs) + GAP_MS * length / FIRST_BYTES;
    // A timer takes a millisecond at least: small pieces share one.
    if (this.#nextAtMs - nowMs >= GAP_MS) await clock.pause(this.#nextAtMs - nowMs);
  }
}

function bodyOf(
  { first, rest, idleTimeoutMs, gaps }: BodyParts,
): Pick<DocumentBody, "pieces" | "cancel"> {
  let isCancelled = false;
  const cancel = () => {
    isCancelled = true;
    void rest?.cancel();
  };
  async function* pieces(): DocumentBody["pieces"] {
    try {
      yield* first.drained();
      while (rest !== undefined) {
        const reading = rest.read().then((piece) => ({ piece }));
        const result = await clock.within(reading, idleTimeoutMs);
        // A cancelled body looks like a complete one.
        if (isCancelled) throw new Failure("upstream-down", "Cannot read document: cancelled");
        if (result === undefined) throw new UpstreamTimeout("the rest of the body", idleTimeoutMs);
        if (result.piece === undefined) return;
        yield result.piece;
        await gaps?.behind(result.piece);
      }
    } finally {
      cancel();
    }
  }
  return { pieces: pieces(), cancel };
}
