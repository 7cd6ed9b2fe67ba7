import { EitherSignal } from "../../base/either_signal.ts";
import { Failure } from "../../base/failure.ts";
import { parseNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { STORE_DIR, type StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import type { DecodeBody } from "../decode_body.ts";
import {
  type DocumentReading,
  ForeignStore,
  type NarinfoReading,
  type NarinfoSource,
  NoAnswer,
  noAnswerReasonOf,
  type RequestRank,
} from "../upstream.ts";
import { LARDER_HEADER } from "../loops.ts";
import { dial, type HttpUpstreamSettings } from "./http_client.ts";
import { failedReading } from "./failed_reading.ts";
import type { NarinfoFetcher } from "./narinfo_fetcher.ts";
import { readSmallDocument } from "./small_document.ts";
import { UpstreamFetch } from "./upstream_fetch.ts";
import { NO_UPSTREAM_TRACE, type UpstreamTrace } from "./upstream_trace.ts";

/** What an upstream's answer says of its root. */
export interface UpstreamRoot {
  /** True if it has a nix-cache-info. */
  readonly hasInfo: boolean;
  readonly isLarder: boolean;
}

export interface HttpNarinfoSourceDeps {
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
