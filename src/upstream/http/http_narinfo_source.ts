import { boundedBytes } from "../../base/bounded_text.ts";
import { EitherSignal } from "../../base/either_signal.ts";
import { Failure } from "../../base/failure.ts";
import { codecOfMagic, parseContentEncoding } from "../../nix/content_encoding.ts";
import { parseNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { signNarinfo } from "../../nix/sign_narinfo.ts";
import type { SecretKey } from "../../nix/signature.ts";
import { STORE_DIR, type StorePathHash } from "../../nix/store_path.ts";
import type { TrustedKeys } from "../../nix/trusted_keys.ts";
import { clock } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { LARDER_HEADER } from "../loops.ts";
import { readNarinfo, readStatus } from "../read_narinfo.ts";
import {
  type DecodeBody,
  type DocumentReading,
  ForeignStore,
  type NarinfoReading,
  type NarinfoSource,
  NoAnswer,
  noAnswerReasonOf,
  type RequestRank,
} from "../upstream.ts";
import {
  dial,
  discard,
  failedReading,
  type HttpUpstreamSettings,
  NO_UPSTREAM_TRACE,
  readRefusal,
  UpstreamFetch,
  type UpstreamTrace,
} from "./upstream_fetch.ts";
import type { NarinfoFetcher, NarinfoOrder, NarinfoWatch } from "./narinfo_fetcher.ts";
import { UpstreamAttempts } from "./upstream_attempts.ts";

/** What an upstream's answer says of its root. */
export interface UpstreamRoot {
  /** True if it has a nix-cache-info. */
  readonly hasInfo: boolean;
  readonly isLarder: boolean;
}

interface HttpNarinfoSourceDeps {
  readonly settings: HttpUpstreamSettings;
  readonly client: HttpClient;
  /** Requests narinfos, here or on another thread. This thread keeps the timeouts. */
  readonly fetcher: NarinfoFetcher;
  /** Decodes what `fetch` does not. Default: such responses are refused. */
  readonly decode?: DecodeBody | undefined;
  readonly trace?: UpstreamTrace | undefined;
  /** Called with each answer to a request for its nix-cache-info. */
  readonly described?: ((root: UpstreamRoot) => void) | undefined;
  /** Called when the upstream refuses a request because it is too busy. */
  readonly busy?: (() => void) | undefined;
}

/** The narinfos of a binary cache behind HTTP. */
export class HttpNarinfoSource implements NarinfoSource {
  readonly url: string;
  readonly priority: number | undefined;
  readonly #deps: HttpNarinfoSourceDeps;
  readonly #fetch: UpstreamFetch;

  constructor(deps: HttpNarinfoSourceDeps) {
    this.url = deps.settings.url;
    this.priority = deps.settings.priority;
    this.#deps = deps;
    this.#fetch = new UpstreamFetch(deps.settings, deps.client);
  }

  async narinfo(
    storePathHash: StorePathHash,
    signal?: AbortSignal,
    rank: RequestRank = "client",
  ): Promise<NarinfoReading> {
    if (signal?.aborted) return failedReading(signal.reason);
    const { fetcher, trace = NO_UPSTREAM_TRACE, busy = () => {} } = this.#deps;
    const isBackground = rank === "prefetch";
    const order = { storePathHash, headers: trace.headers(), isFinal: isBackground };
    const { answered } = trace;
    return await this.#fetch.watched(
      this.url,
      { signal, isBackground },
      (ended) => fetcher.fetch(order, { signal: ended, answered, busy }),
    );
  }

  async describe(signal?: AbortSignal): Promise<number | undefined> {
    const { decode, trace = NO_UPSTREAM_TRACE, described = () => undefined } = this.#deps;
    const reading = await this.#fetch
      .run(`${this.url}/nix-cache-info`, { headers: trace.headers(), signal }, (response) => {
        const { status, headers } = response;
        described({ hasInfo: status === 200, isLarder: headers.has(LARDER_HEADER) });
        return readSmallDocument(response, { decode, upstream: this.url });
      })
      .catch((error): DocumentReading => failedReading(error));
    if (reading.kind === "failed") {
      const reason = noAnswerReasonOf(reading);
      if (reason !== undefined) throw new NoAnswer(reason, reading.detail);
      const { kind: _, detail, ...facts } = reading;
      throw new Failure("corrupt", detail, facts);
    }
    if (reading.kind === "absent") return undefined;
    const info = parseNixCacheInfo(reading.text);
    if (info.storeDir === STORE_DIR) return info.priority;
    throw new ForeignStore(info.storeDir);
  }

  async reach(signal: AbortSignal): Promise<boolean> {
    const { viaProxy = false, dialTimeoutMs } = this.#deps.settings;
    if (viaProxy) return true;
    using limit = clock.deadline(dialTimeoutMs);
    using either = new EitherSignal(signal, limit.signal);
    return await dial(this.#deps.client, this.url, either.signal);
  }
}

interface HttpNarinfoFetcherDeps {
  readonly settings: HttpUpstreamSettings;
  readonly client: HttpClient;
  /** Decodes what `fetch` does not. Default: such responses are refused. */
  readonly decode?: DecodeBody | undefined;
  readonly keys: TrustedKeys;
  readonly requireSignature: boolean;
  /** Signs every narinfo that a trusted key signed; default: signs none. */
  readonly secretKey?: SecretKey | undefined;
}

/** Fetches, parses and verifies the narinfos of one upstream, on the thread that calls it. */
export class HttpNarinfoFetcher implements NarinfoFetcher {
  readonly #deps: HttpNarinfoFetcherDeps;
  readonly #attempts: UpstreamAttempts;

  constructor(deps: HttpNarinfoFetcherDeps) {
    this.#deps = deps;
    this.#attempts = new UpstreamAttempts(deps.settings, deps.client);
  }

  async fetch(order: NarinfoOrder, watch: NarinfoWatch): Promise<NarinfoReading> {
    const { settings: { url: baseUrl }, decode, keys, requireSignature, secretKey } = this.#deps;
    const { storePathHash, headers, isFinal } = order;
    const url = `${baseUrl}/${storePathHash}.narinfo`;
    const document = await this.#attempts.run(
      url,
      { headers, isFinal, ...watch },
      (response) => readSmallDocument(response, { decode, upstream: baseUrl }),
    )
      .catch((error): DocumentReading => failedReading(error));
    if (document.kind !== "found") return document;
    const rules = { baseUrl, keys, requireSignature };
    const reading = readNarinfo(storePathHash, document.text, rules);
    if (secretKey === undefined || reading.kind !== "found" || !reading.trusted) return reading;
    return { ...reading, ownSignature: signNarinfo(secretKey, reading.narinfo) };
  }
}

/** Real narinfos have a few KiB; one with 10,000 references has half a MiB. */
const DOCUMENT_BYTES_MAX = 2 << 20;

/**
 * Reads the response to a request for a narinfo or a nix-cache-info, with its body. One that says
 * nothing of its encoding is decoded if it begins as a compressed file does: some caches forget the
 * header.
 */
export async function readSmallDocument(
  response: Response,
  { decode = refuse, upstream }: {
    readonly decode?: DecodeBody | undefined;
    readonly upstream: string;
  },
): Promise<DocumentReading> {
  if (readStatus(response.status) !== "found") return await readRefusal(response);
  const encoding = parseContentEncoding(response.headers.get("content-encoding"));
  if (encoding.kind === "unknown") {
    await discard(response);
    return unknownEncoding(encoding.name);
  }
  let bytes = await boundedBytes(response, { bytesMax: DOCUMENT_BYTES_MAX });
  const codecs = encoding.codecs.length > 0 ? encoding.codecs : codecOfMagic(bytes);
  if (codecs.length > 0) {
    bytes = await decode(bytes, { codecs, upstream, bytesMax: DOCUMENT_BYTES_MAX });
  }
  return { kind: "found", text: TEXT.decode(bytes) };
}

/** The reading of a response whose encoding larder does not know. */
export function unknownEncoding(
  name: string,
): Extract<DocumentReading, { kind: "failed" }> {
  const detail = `Cannot read its Content-Encoding: ${name} is not known`;
  return { kind: "failed", reason: "garbage", detail };
}

const TEXT = new TextDecoder();

function refuse(): Promise<never> {
  throw new Failure("corrupt", "Cannot decode its body here");
}
