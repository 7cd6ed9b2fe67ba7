import { Failure, messageOf } from "../../base/failure.ts";
import { AnswerWatch } from "./answer_watch.ts";
import type { HttpUpstreamSettings } from "./http_settings.ts";

export interface ExchangeOptions {
  readonly method?: "GET" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the exchange, and the reading of a body that was handed on. */
  readonly signal?: AbortSignal | undefined;
}

/** Requests to one upstream, under its dial and header timeouts. */
export class Exchange {
  readonly #settings: HttpUpstreamSettings;
  readonly #client: Deno.HttpClient;

  constructor(settings: HttpUpstreamSettings, client: Deno.HttpClient) {
    this.#settings = settings;
    this.#client = client;
  }

  /**
   * Sends one request and lets `use` make something of the response. `use` runs under the header
   * timeout too: a small document is read there, while a NAR's body is handed on unread. Throws
   * a Failure "upstream-down" for whatever went wrong on the way.
   */
  async run<Value>(
    url: URL | string,
    options: ExchangeOptions,
    use: (response: Response) => Promise<Value> | Value,
  ): Promise<Value> {
    options.signal?.throwIfAborted();
    const abort = new AbortController();
    options.signal?.addEventListener("abort", () => abort.abort(options.signal?.reason), {
      once: true,
    });
    using _watch = new AnswerWatch(url, this.#settings, (late) => abort.abort(late));
    try {
      return await use(await this.#fetch(url, options, abort.signal));
    } catch (error) {
      throw abort.signal.aborted ? abort.signal.reason : asFailure(error);
    }
  }

  async #fetch(
    url: URL | string,
    { method = "GET", headers }: ExchangeOptions,
    signal: AbortSignal,
  ): Promise<Response> {
    const { authorization, userAgent } = this.#settings;
    const init = {
      method,
      client: this.#client,
      signal,
      headers: {
        // Deno decodes gzip and br whether asked for or not, and loses the length with it.
        "accept-encoding": "identity",
        "user-agent": userAgent,
        ...(authorization === undefined ? {} : { authorization }),
        ...headers,
      },
    };
    try {
      return await fetch(url, init);
    } catch (error) {
      // A kept connection that the other side closed while our request was on its way fails it;
      // a new one tells whether anybody is there.
      if (signal.aborted || messageOf(error).includes("(Connect)")) throw error;
      return await fetch(url, init);
    }
  }
}

function asFailure(error: unknown): unknown {
  if (error instanceof Failure) return error;
  return new Failure("upstream-down", `Cannot reach upstream: ${messageOf(error)}`, {}, error);
}
