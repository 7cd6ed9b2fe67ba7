import { Failure, messageOf } from "../../base/failure.ts";
import { formatMs } from "../../base/format_units.ts";
import { wholeNumber } from "../../base/plain_number.ts";
import type { SharedTimer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { HttpClient, Net } from "../../runtime/net.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import { readStatus } from "../read_narinfo.ts";
import { type DocumentReading, NoAnswer } from "../upstream.ts";
import { type AttemptOptions, UpstreamAttempts } from "./upstream_attempts.ts";

interface UpstreamFetchOptions extends Omit<AttemptOptions, "signal"> {
  /** Ends the request, and the body of its response. */
  readonly signal?: AbortSignal | undefined;
}

/** What a request waits for: without a client, it ends with the header timeout. */
interface WatchOptions {
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

/** Time without an answer after which larder tests the dialing. */
const DIAL_TEST_AFTER_MS = 100;

/** An upstream timed out; `message` names the step that took too long. */
export class UpstreamTimeout extends NoAnswer {
  constructor(step: string, limitMs: number) {
    super("timeout", `Cannot get answer: ${step} took over ${formatMs(limitMs)}`);
  }
}

interface AnswerTimeouts {
  readonly dialTimeoutMs: number;
  /** The longest wait for an answer over a connection that stands. */
  readonly answerTimeoutMs: number;
  /** True where a proxy may stand in between: `fetch` then chooses the address to dial. */
  readonly viaProxy?: boolean;
}

/** The limits of all requests to one upstream. */
interface AnswerLimits extends AnswerTimeouts {
  /** Each request waits here for its answer first. */
  readonly dialTests: SharedTimer;
  readonly dialTestAfterMs: number;
}

export function answerLimits(timeouts: AnswerTimeouts): AnswerLimits {
  const { dialTimeoutMs, answerTimeoutMs, viaProxy = false } = timeouts;
  const dialTestAfterMs = Math.min(DIAL_TEST_AFTER_MS, dialTimeoutMs, answerTimeoutMs);
  const dialTests = clock.sharedTimer(dialTestAfterMs);
  return { dialTimeoutMs, answerTimeoutMs, viaProxy, dialTests, dialTestAfterMs };
}

interface AnswerWatchDeps {
  readonly limits: AnswerLimits;
  readonly onLate: (error: UpstreamTimeout) => void;
  /** Dials the address of the request, beside it. */
  readonly dial: (signal: AbortSignal) => Promise<unknown>;
}

/**
 * Calls `onLate` when the dialing, or the answer after it, times out. `fetch` has no timeouts, and
 * does not tell the two apart. So a late answer makes us dial the same address beside it. Quick
 * answers share one timer.
 */
export class AnswerWatch implements Disposable {
  /** Made only when there is a dial to end: making and aborting one costs as much as a timer. */
  #dialing: AbortController | undefined;
  #isOver = false;
  readonly #onLate: (error: UpstreamTimeout) => void;
  readonly #dial: AnswerWatchDeps["dial"];
  readonly #waiting: Disposable;
  #limit: Disposable | undefined;

  constructor({ limits, onLate, dial }: AnswerWatchDeps) {
    this.#onLate = onLate;
    this.#dial = dial;
    this.#waiting = limits.dialTests.start(() => void this.#testDial(limits));
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#waiting[Symbol.dispose]();
    this.#limit?.[Symbol.dispose]();
    this.#dialing?.abort();
  }

  async #testDial(
    { dialTimeoutMs, answerTimeoutMs, viaProxy, dialTestAfterMs }: AnswerLimits,
  ): Promise<void> {
    if (viaProxy) {
      return this.#wait("the answer", Math.max(dialTimeoutMs, answerTimeoutMs), dialTestAfterMs);
    }
    const dialedAtMs = clock.nowMs();
    this.#wait("connecting", dialTimeoutMs, dialTestAfterMs);
    this.#dialing = new AbortController();
    // The request itself shows better whether the connection works.
    await this.#dial(this.#dialing.signal);
    if (this.#isOver) return;
    const dialMs = clock.nowMs() - dialedAtMs;
    // A dial that was slow for the test was as slow for the request.
    const waitedMs = dialMs < DIAL_TEST_AFTER_MS ? dialTestAfterMs + dialMs : 0;
    this.#wait("the answer", answerTimeoutMs, waitedMs);
  }

  #wait(step: string, limitMs: number, waitedMs: number): void {
    this.#limit?.[Symbol.dispose]();
    this.#limit = clock.countdown(limitMs - waitedMs, () => {
      this.#onLate(new UpstreamTimeout(step, limitMs));
    });
  }
}

/** Connects a request to an upstream with the trace that it belongs to. */
export interface UpstreamTrace {
  /** Headers that let the upstream continue the trace; none if it must not know of it. */
  headers(): Readonly<Record<string, string>>;
  /** Notes the status of the final response. */
  answered(status: number): void;
}

/** Trace of requests without one: it does nothing. */
export const NO_UPSTREAM_TRACE: UpstreamTrace = { headers: () => ({}), answered() {} };

/** Trace of requests in spans. `propagates`: upstreams get the trace's headers. */
export function upstreamTraceOf(tracer: Tracer, propagates: boolean): UpstreamTrace {
  return {
    headers: () => propagates ? tracer.headers() : {},
    answered: (status) => tracer.note({ "http.response.status_code": status }),
  };
}

/** The same trace; each request has these headers, too. */
export function traceWith(
  trace: UpstreamTrace = NO_UPSTREAM_TRACE,
  headers: UpstreamTrace["headers"],
): UpstreamTrace {
  return { ...trace, headers: () => ({ ...trace.headers(), ...headers() }) };
}

type FailedReading = Extract<DocumentReading, { kind: "failed" }>;

/** Reads the status of a response without a usable document, and discards its body. */
export async function readRefusal(
  response: Response,
): Promise<FailedReading | Extract<DocumentReading, { kind: "absent" }>> {
  await discard(response);
  if (readStatus(response.status) === "absent") return { kind: "absent" };
  const { status } = response;
  return { kind: "failed", reason: "status", detail: `HTTP status ${status}`, status };
}

/** Reads an error of a request for a document. */
export function failedReading(error: unknown): FailedReading {
  return { kind: "failed", reason: reasonOf(error), detail: messageOf(error) };
}

function reasonOf(error: unknown) {
  if (error instanceof NoAnswer) return error.reason;
  return error instanceof Failure && error.kind === "corrupt" ? "garbage" : "unreachable";
}

/** Reading a body up to this size gives the connection back; cancelling closes it. */
const READ_BYTES_MAX = 4_096;

/** Reads or cancels a body that nobody needs. */
export async function discard(response: Response): Promise<void> {
  const announced = wholeNumber(response.headers.get("content-length")) ?? NaN;
  if (announced <= READ_BYTES_MAX) await response.bytes();
  else await response.body?.cancel();
}

/** The settings of one upstream; plain data, so that a Worker can receive it. */
export interface HttpUpstreamSettings {
  /** URL without credentials, query and trailing slash. */
  readonly url: string;
  /** The value of the Authorization header, where there are credentials. */
  readonly authorization?: string;
  /** Set by the operator; overrides the upstream's own nix-cache-info. */
  readonly priority?: number;
  /** True where the environment names a proxy, which `fetch` uses by itself. */
  readonly viaProxy?: boolean;
  readonly dialTimeoutMs: number;
  /** After a third of it, another source of a NAR gets the request too. Prefetches end with it. */
  readonly headerTimeoutMs: number;
  /** The longest silence of an upstream whose connection stands. */
  readonly idleTimeoutMs: number;
  readonly userAgent: string;
}

/** The longest wait for an answer over a connection that stands: slow is not gone. */
export function answerTimeoutOf(
  { headerTimeoutMs, idleTimeoutMs }: Pick<
    HttpUpstreamSettings,
    "headerTimeoutMs" | "idleTimeoutMs"
  >,
): number {
  return Math.max(headerTimeoutMs, idleTimeoutMs);
}

/** PEM texts of certificate authorities to trust besides the system's. */
export type CaCertificates = readonly string[];

/** One pool of connections, for all upstreams. Throws when a certificate cannot be used. */
export function createUpstreamClient(net: Net, caCertificates: CaCertificates): HttpClient {
  try {
    return net.client(caCertificates);
  } catch (error) {
    throw new Failure("broken", `Cannot use CA certificates: ${messageOf(error)}`, {}, error);
  }
}

/** True when a connection to the URL's host stood; false when it was refused or aborted. */
export async function dial(
  client: Pick<HttpClient, "dial">,
  url: URL | string,
  signal: AbortSignal,
): Promise<boolean> {
  const { protocol, hostname: host, port: named } = new URL(url);
  const port = Number(named) || (protocol === "https:" ? 443 : 80);
  return await client.dial({ hostname: host.replace(/^\[|\]$/g, ""), port }, signal);
}
