import { Failure, messageOf } from "../../base/failure.ts";
import { pause } from "../../base/pause.ts";
import { NoAnswer } from "../upstream.ts";
import { type AnswerLimits, answerLimits, AnswerWatch } from "./answer_watch.ts";
import type { HttpUpstreamSettings } from "./http_settings.ts";
import { BUSY_STATUSES } from "../upstream_strain.ts";
import { fetchFollowing } from "./redirects.ts";
import { Retries } from "./retries.ts";

export interface UpstreamFetchOptions {
  readonly method?: "GET" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the request, and the body of its response. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the status of the final response. */
  readonly answered?: ((status: number) => void) | undefined;
  /** Called with each response that says that the upstream is too busy, retried or not. */
  readonly busy?: (() => void) | undefined;
  /** Called before each request. */
  readonly asked?: (() => void) | undefined;
  /** True: no retries. */
  readonly isFinal?: boolean | undefined;
}

/** Requests to one upstream, under its dial and header timeouts. */
export class UpstreamFetch {
  readonly #settings: HttpUpstreamSettings;
  readonly #client: Deno.HttpClient;
  readonly #limits: AnswerLimits;

  constructor(settings: HttpUpstreamSettings, client: Deno.HttpClient) {
    this.#settings = settings;
    this.#client = client;
    this.#limits = answerLimits(settings);
  }

  /**
   * Sends a request and returns the result of `use`, which gets the response. `use` runs under the
   * header timeout too: it reads a small document, and returns a NAR's body unread. A broken
   * connection or a busy upstream is retried within that time. Throws NoAnswer without an answer,
   * and the errors of `use`.
   */
  async run<Value>(
    url: URL | string,
    options: UpstreamFetchOptions,
    use: (response: Response) => Promise<Value> | Value,
  ): Promise<Value> {
    options.signal?.throwIfAborted();
    const abort = new AbortController();
    options.signal?.addEventListener("abort", () => abort.abort(options.signal?.reason), {
      once: true,
    });
    using _watch = new AnswerWatch(url, this.#limits, (late) => abort.abort(late));
    const retries = new Retries(options.isFinal ? 0 : this.#settings.headerTimeoutMs);
    for (;;) {
      let pauseMs: number | undefined;
      try {
        const response = await this.#fetch(url, options, abort.signal);
        if (BUSY_STATUSES.has(response.status)) options.busy?.();
        pauseMs = retries.after(response);
        if (pauseMs === undefined) {
          options.answered?.(response.status);
          return await use(response);
        }
        await response.body?.cancel();
      } catch (error) {
        if (abort.signal.aborted) throw abort.signal.reason;
        if (error instanceof Failure) throw error;
        pauseMs = retries.afterError(error);
        if (pauseMs === undefined) {
          const message = `Cannot reach upstream: ${messageOf(error)}`;
          throw new NoAnswer("unreachable", message, error);
        }
      }
      await pause(pauseMs, abort.signal);
    }
  }

  #fetch(
    url: URL | string,
    { method = "GET", headers, asked }: UpstreamFetchOptions,
    signal: AbortSignal,
  ): Promise<Response> {
    asked?.();
    const { authorization, userAgent } = this.#settings;
    const init = {
      method,
      client: this.#client,
      signal,
      headers: {
        // Deno decodes gzip and br, requested or not, and drops the length.
        "accept-encoding": "identity",
        "user-agent": userAgent,
        ...headers,
      },
    };
    return fetchFollowing(url, init, authorization);
  }
}
