import { boundedText } from "../../base/bounded_text.ts";
import { Failure } from "../../base/failure.ts";
import { parseNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { STORE_DIR, type StorePathHash } from "../../nix/store_path.ts";
import type { TrustedKeys } from "../../nix/trusted_keys.ts";
import { readNarinfo, readStatus } from "../reading.ts";
import {
  type DocumentReading,
  type NarinfoReading,
  type NarinfoSource,
  NoAnswer,
  noAnswerReasonOf,
} from "../upstream.ts";
import { dial } from "./dial.ts";
import { UpstreamFetch, type UpstreamFetchOptions } from "./upstream_fetch.ts";
import { failedReading, readRefusal } from "./failed_reading.ts";
import type { HttpUpstreamSettings } from "./http_settings.ts";
import { NO_UPSTREAM_TRACE, type UpstreamTrace } from "./upstream_trace.ts";

/** Real narinfos have a few KiB; one with 10,000 references has half a MiB. */
const DOCUMENT_BYTES_MAX = 2 << 20;

export interface HttpNarinfoSourceDeps {
  readonly settings: HttpUpstreamSettings;
  readonly client: Deno.HttpClient;
  readonly keys: TrustedKeys;
  readonly requireSignature: boolean;
  readonly trace?: UpstreamTrace | undefined;
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

  async narinfo(storePathHash: StorePathHash, signal?: AbortSignal): Promise<NarinfoReading> {
    const { keys, requireSignature, trace = NO_UPSTREAM_TRACE, busy } = this.#deps;
    const options = { signal, headers: trace.headers(), answered: trace.answered, busy };
    const reading = await this.#document(`${storePathHash}.narinfo`, options);
    if (reading.kind !== "found") return reading;
    return readNarinfo(storePathHash, reading.text, { baseUrl: this.url, keys, requireSignature });
  }

  async describe(signal?: AbortSignal): Promise<number | undefined> {
    const reading = await this.#document("nix-cache-info", { signal });
    if (reading.kind === "failed") {
      const reason = noAnswerReasonOf(reading);
      if (reason !== undefined) throw new NoAnswer(reason, reading.detail);
      const { kind: _, detail, ...facts } = reading;
      throw new Failure("corrupt", detail, facts);
    }
    if (reading.kind === "absent") return undefined;
    const info = parseNixCacheInfo(reading.text);
    if (info.storeDir === STORE_DIR) return info.priority;
    throw new Failure("corrupt", `Cannot use upstream: its store directory is ${info.storeDir}`);
  }

  async reach(signal: AbortSignal): Promise<boolean> {
    const { viaProxy = false, dialTimeoutMs } = this.#deps.settings;
    if (viaProxy) return true;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), dialTimeoutMs);
    const isReached = await dial(this.url, AbortSignal.any([signal, late.signal]));
    clearTimeout(timer);
    return isReached;
  }

  async #document(path: string, options: UpstreamFetchOptions = {}): Promise<DocumentReading> {
    try {
      return await this.#fetch.run(`${this.url}/${path}`, options, async (response) => {
        if (readStatus(response.status) === "found") {
          return { kind: "found", text: await boundedText(response, DOCUMENT_BYTES_MAX) };
        }
        return await readRefusal(response);
      });
    } catch (error) {
      return failedReading(error);
    }
  }
}
