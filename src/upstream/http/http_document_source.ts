import { ByteBlocks } from "../../base/byte_blocks.ts";
import { Failure } from "../../base/failure.ts";
import { PieceReader } from "../../base/piece_reader.ts";
import { wholeNumber } from "../../base/plain_number.ts";
import type { DocumentPath } from "../../nix/document_name.ts";
import { clock } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import type { DocumentAnswer, DocumentBody, DocumentSource } from "../document_source.ts";
import { UpstreamTimeout } from "./answer_watch.ts";
import { UpstreamFetch } from "./upstream_fetch.ts";
import { failedReading, readRefusal } from "./failed_reading.ts";
import type { HttpUpstreamSettings } from "./http_settings.ts";
import { NO_UPSTREAM_TRACE, type UpstreamTrace } from "./upstream_trace.ts";

/** Read as part of the answer, under its timeouts: nearly all documents are smaller. */
const FIRST_BYTES = 64 * 1024;

// Deno's fetch decodes gzip, and in 2.6.8 brotli too: these encodings never appear here.
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
        const encoding = response.headers.get("content-encoding")?.toLowerCase() ?? "identity";
        if (ENCODING_REGEXP.test(encoding)) {
          return { kind: "found", body: await this.#begin(response, encoding) };
        }
        await response.body?.cancel();
        return { kind: "failed", reason: "garbage", detail: "Cannot read its Content-Encoding" };
      });
    } catch (error) {
      return failedReading(error);
    }
  }

  async #begin({ headers, body }: Response, encoding: string): Promise<DocumentBody> {
    const length = headers.get("content-length") ?? "";
    const first = new ByteBlocks();
    let rest = body === null ? undefined : new PieceReader(body);
    while (rest !== undefined && first.byteLength < FIRST_BYTES) {
      const piece = await rest.read();
      if (piece === undefined) rest = undefined;
      else first.add(piece);
    }
    return {
      encoding: encoding === "identity" ? undefined : encoding,
      bodyBytes: wholeNumber(length),
      framed: length !== "" || headers.has("transfer-encoding"),
      ...bodyOf({ first, rest, idleTimeoutMs: this.#idleTimeoutMs }),
    };
  }
}

interface BodyParts {
  readonly first: ByteBlocks;
  readonly rest: PieceReader | undefined;
  readonly idleTimeoutMs: number;
}

function bodyOf(
  { first, rest, idleTimeoutMs }: BodyParts,
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
      }
    } finally {
      cancel();
    }
  }
  return { pieces: pieces(), cancel };
}
