import type { HttpClient } from "../../runtime/net.ts";
import { type AnswerLimits, answerLimits, AnswerWatch } from "./answer_watch.ts";
import { answerTimeoutOf, dial, type HttpUpstreamSettings } from "./http_client.ts";
import { type AttemptOptions, UpstreamAttempts } from "./upstream_attempts.ts";

export interface UpstreamFetchOptions extends Omit<AttemptOptions, "signal"> {
  /** Ends the request, and the body of its response. */
  readonly signal?: AbortSignal | undefined;
}

/** What a request waits for: without a client, it ends with the header timeout. */
export interface WatchOptions {
  readonly signal?: AbortSignal | undefined;
  /** True for a request that no client waits for. */
  readonly isBackground?: boolean;
}

/** Requests to one upstream, under its dial timeout and the timeout of its answers. */
export class UpstreamFetch {
  readonly #attempts: UpstreamAttempts;
  readonly #limits: AnswerLimits;
  readonly #backgroundLimits: AnswerLimits;
  readonly #client: HttpClient;

  constructor(settings: HttpUpstreamSettings, client: HttpClient) {
    this.#attempts = new UpstreamAttempts(settings, client);
    const answerTimeoutMs = answerTimeoutOf(settings);
    this.#limits = answerLimits({ ...settings, answerTimeoutMs });
    const backgroundMs = Math.min(answerTimeoutMs, settings.headerTimeoutMs);
    this.#backgroundLimits = answerLimits({ ...settings, answerTimeoutMs: backgroundMs });
    this.#client = client;
  }

  /**
   * Sends a request and returns the result of `use`, which gets the response. `use` runs under the
   * answer's timeout too: it reads a small document, and returns a NAR's body unread. It retries a
   * broken connection or a busy upstream within the header timeout. Throws NoAnswer without an
   * answer, and the errors of `use`.
   */
  async run<Value>(
    url: URL | string,
    options: UpstreamFetchOptions,
    use: (response: Response) => Promise<Value> | Value,
  ): Promise<Value> {
    return await this.watched(
      url,
      { signal: options.signal },
      (signal) => this.#attempts.run(url, { ...options, signal }, use),
    );
  }

  /**
   * Runs a request to `url` under the timeouts. Its signal fires with an UpstreamTimeout, or with
   * the reason of `signal`. Throws that reason where `signal` has fired before.
   */
  async watched<Value>(
    url: URL | string,
    { signal, isBackground = false }: WatchOptions,
    request: (ended: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    signal?.throwIfAborted();
    const abort = new AbortController();
    signal?.addEventListener("abort", () => abort.abort(signal.reason), { once: true });
    using _watch = new AnswerWatch({
      limits: isBackground ? this.#backgroundLimits : this.#limits,
      onLate: (late) => abort.abort(late),
      dial: (dialing) => dial(this.#client, url, dialing),
    });
    return await request(abort.signal);
  }
}
