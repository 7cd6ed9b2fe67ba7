import { Failure } from "../../base/failure.ts";
import { wholeNumber } from "../../base/plain_number.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { parseContentEncoding } from "../../nix/content_encoding.ts";
import {
  describedPath,
  type NarBody,
  type NarBodySource,
  type NarHead,
  type NarRequest,
  NoAnswer,
  resolveLocation,
} from "../upstream.ts";
import { readStatus } from "../read_narinfo.ts";
import {
  type HttpUpstreamSettings,
  NO_UPSTREAM_TRACE,
  readRefusal,
  UpstreamFetch,
  type UpstreamTrace,
} from "./upstream_fetch.ts";

export interface HttpNarSourceDeps {
  readonly settings: HttpUpstreamSettings;
  readonly client: HttpClient;
  readonly trace?: UpstreamTrace | undefined;
}

/** The NAR files of a binary cache behind HTTP. */
export class HttpNarSource implements NarBodySource {
  readonly url: string;
  readonly #fetch: UpstreamFetch;
  readonly #trace: UpstreamTrace;

  constructor({ settings, client, trace = NO_UPSTREAM_TRACE }: HttpNarSourceDeps) {
    this.url = settings.url;
    this.#trace = trace;
    this.#fetch = new UpstreamFetch(settings, client);
  }

  async openNar(
    location: string,
    { offset, tag, ...request }: NarRequest,
  ): Promise<NarBody | undefined> {
    const url = this.#locate(location);
    const headers = {
      ...this.#trace.headers(),
      ...(offset > 0 ? { range: `bytes=${offset}-` } : {}),
      ...(offset > 0 && tag !== undefined ? { "if-range": tag } : {}),
    };
    const { answered } = this.#trace;
    return await this.#fetch.run(url, { headers, answered, ...request }, async (response) => {
      if (offset > 0 && response.status === 416) return await nothingLeft(response, offset);
      const found = await this.#foundOrAbsent(response);
      if (!found || response.body === null) return undefined;
      try {
        return narBodyOf(response, response.body);
      } catch (error) {
        await response.body.cancel();
        throw error;
      }
    });
  }

  async statNar(
    location: string,
    signal?: AbortSignal,
  ): Promise<NarHead | undefined> {
    const url = this.#locate(location);
    const headers = this.#trace.headers();
    const { answered } = this.#trace;
    const stat = (method: "HEAD" | "GET") =>
      this.#fetch.run(url, { method, headers, answered, signal }, async (response) => {
        if (!await this.#foundOrAbsent(response)) return undefined;
        await response.body?.cancel();
        const length = response.headers.get("content-length");
        if (length === "0") return EMPTY;
        const storePathHash = describedPath(response.headers.get("link"));
        return { ...sizeOf(length), ...storePathHash && { storePathHash } };
      });
    try {
      const found = await stat("HEAD");
      if (found !== EMPTY) return found;
    } catch (error) {
      // After a whole timeout another request would time out, too.
      if (error instanceof NoAnswer || signal?.aborted) throw error;
    }
    // Some caches answer only GET, or send a size only there; its body is not read.
    return await stat("GET");
  }

  #locate(location: string): URL {
    const url = resolveLocation(this.url, location);
    if (url !== undefined) return url;
    throw new Failure("corrupt", "Cannot request NAR: its location leaves the upstream", {
      upstream: this.url,
      location: location.replace(/\?.*$/s, "?(hidden)"),
    });
  }

  async #foundOrAbsent(response: Response): Promise<boolean> {
    const encoding = response.headers.get("content-encoding") ?? "identity";
    if (readStatus(response.status) === "found" && isPlain(encoding)) return true;
    const reading = await readRefusal(response);
    if (reading.kind === "absent") return false;
    throw new Failure(
      "upstream-down",
      `Cannot get NAR: HTTP status ${response.status}, content encoding ${encoding}`,
      { status: response.status },
    );
  }
}

function isPlain(contentEncoding: string): boolean {
  const encoding = parseContentEncoding(contentEncoding);
  return encoding.kind === "known" && encoding.codecs.length === 0;
}

/** No NAR is empty: the length 0 says nothing of its size. */
const EMPTY: NarHead = {};

/**
 * Content-Range says which part of the file the body is, whatever the status. A 200 without it is
 * the whole file. Throws where the header is unreadable, or a 206 has none.
 */
function narBodyOf({ status, headers }: Response, body: NarBody["body"]): NarBody {
  const length = headers.get("content-length");
  const tag = headers.get("etag");
  const common = {
    body,
    framed: length !== null || headers.has("transfer-encoding"),
    // A weak tag stays the same where bytes may differ.
    ...(tag?.startsWith('"') ? { tag } : {}),
  };
  const range = headers.get("content-range");
  if (status !== 206 && range === null) return { ...common, ...sizeOf(length), offset: 0 };
  const [match, start, size] = CONTENT_RANGE_REGEXP.exec(range ?? "") ?? [];
  if (match === undefined) {
    throw new Failure("upstream-down", `Cannot get NAR: it sends the range "${range}"`);
  }
  return { ...common, ...sizeOf(size), offset: Number(start) };
}

const CONTENT_RANGE_REGEXP = /^bytes ([0-9]{1,15})-[0-9]{1,15}\/([0-9]{1,15}|\*)$/;

function sizeOf(text: string | null | undefined): { fileSize?: number } {
  const fileSize = wholeNumber(text);
  return fileSize === undefined ? {} : { fileSize };
}

/** Reads a 416: the upstream has nothing from `offset` on if that is the file's size. */
async function nothingLeft(response: Response, offset: number): Promise<NarBody> {
  await response.body?.cancel();
  const range = response.headers.get("content-range") ?? "";
  if (range !== `bytes */${offset}`) {
    throw new Failure("upstream-down", `Cannot get NAR: it has no byte ${offset}, says "${range}"`);
  }
  const body = new ReadableStream<Uint8Array>({
    type: "bytes",
    start: (controller) => controller.close(),
  });
  return { fileSize: offset, offset, body, framed: true };
}
