import { Failure, messageOf } from "../../base/failure.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { NoAnswer } from "../upstream.ts";
import { BUSY_STATUSES } from "../upstream_load.ts";
import type { HttpUpstreamSettings } from "./http_client.ts";
import { fetchFollowing } from "./redirects.ts";

export interface AttemptOptions {
  readonly method?: "GET" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the attempts, and the body of the response. */
  readonly signal: AbortSignal;
  /** Called with the status of the final response. */
  readonly answered?: ((status: number) => void) | undefined;
  /** Called with each response that says that the upstream is too busy, retried or not. */
  readonly busy?: (() => void) | undefined;
  /** Called before each request. */
  readonly requested?: (() => void) | undefined;
  /** True: no retries. */
  readonly isFinal?: boolean | undefined;
}

/** Requests to one upstream, with their retries but without timeouts. */
export class UpstreamAttempts {
  readonly #settings: HttpUpstreamSettings;
  readonly #client: HttpClient;

  constructor(settings: HttpUpstreamSettings, client: HttpClient) {
    this.#settings = settings;
    this.#client = client;
  }

  /**
   * Sends a request and returns the result of `use`, which gets the response. It retries a broken
   * connection or a busy upstream within the header timeout. Throws NoAnswer without an answer, the
   * signal's reason, and the errors of `use`.
   */
  async run<Value>(
    url: URL | string,
    options: AttemptOptions,
    use: (response: Response) => Promise<Value> | Value,
  ): Promise<Value> {
    const { signal } = options;
    const retries = new Retries(options.isFinal ? 0 : this.#settings.headerTimeoutMs);
    for (;;) {
      let pauseMs: number | undefined;
      try {
        const response = await this.#fetch(url, options);
        if (BUSY_STATUSES.has(response.status)) options.busy?.();
        pauseMs = retries.after(response);
        if (pauseMs === undefined) {
          options.answered?.(response.status);
          return await use(response);
        }
        await response.body?.cancel();
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (error instanceof Failure) throw error;
        pauseMs = retries.afterError(error);
        if (pauseMs === undefined) {
          const message = `Cannot reach upstream: ${messageOf(error)}`;
          throw new NoAnswer("unreachable", message, error);
        }
      }
      await clock.pause(pauseMs, signal);
    }
  }

  #fetch(
    url: URL | string,
    { method = "GET", headers, requested, signal }: AttemptOptions,
  ): Promise<Response> {
    requested?.();
    const { authorization, userAgent } = this.#settings;
    const init = {
      method,
      client: this.#client,
      signal,
      headers: {
        // In 2.6.8, Deno decodes gzip and br, requested or not, and drops length and encoding.
        "accept-encoding": "identity",
        "user-agent": userAgent,
        ...headers,
      },
    };
    return fetchFollowing(url, init, authorization);
  }
}

const RETRIES_MAX = 2;

/** A longer Retry-After means no retry: a client waits for the answer. */
const PAUSE_MAX_MS = 1_000;

/** Pauses without Retry-After, by retry; a random half is added to each. */
const PAUSES_MS = [20, 100];

/** The retries of one request: how many, and after which pauses. All end within `limitMs`. */
export class Retries {
  readonly #limitMs: number;
  readonly #startedAtMs = clock.nowMs();
  #count = 0;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** The pause before the next attempt; `undefined`: the answer is final. */
  after({ status, headers }: Response): number | undefined {
    if (!BUSY_STATUSES.has(status)) return undefined;
    const wanted = headers.get("retry-after");
    return this.#next(wanted === null ? undefined : waitOf(wanted, headers.get("date")));
  }

  /** The same for an answer that did not come, or broke off. */
  afterError(error: unknown): number | undefined {
    // Connection refused, certificate not trusted, or port blocked: a retry changes nothing.
    if (/\(Connect\)|Requests to port \d+ are blocked/.test(messageOf(error))) return undefined;
    return this.#next();
  }

  #next(wantedMs = PAUSES_MS[this.#count] ?? Infinity): number | undefined {
    const pauseMs = wantedMs + dice.fraction() * (PAUSES_MS[this.#count] ?? 0) / 2;
    const leftMs = this.#limitMs - (clock.nowMs() - this.#startedAtMs);
    if (this.#count >= RETRIES_MAX || wantedMs > PAUSE_MAX_MS || pauseMs >= leftMs) {
      return undefined;
    }
    this.#count++;
    return pauseMs;
  }
}

/** Retry-After in ms: seconds, or a date by the clock of the response's own Date. */
function waitOf(retryAfter: string, date: string | null): number {
  if (/^[0-9]+$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const nowMs = Date.parse(date ?? "") || clock.wallMs();
  const untilMs = Date.parse(retryAfter);
  return Number.isNaN(untilMs) ? Infinity : Math.max(0, untilMs - nowMs);
}
