import { Buffer } from "node:buffer";
import { STATUS_CODES } from "node:http";
import type { Bytes } from "../../base/bytes.ts";
import type { Facts } from "../../base/failure.ts";
import type { CacheResult, NarFacts } from "../../cache/nar/nar_answer.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import { type ClientRequest, isByCommand, withoutBlanks } from "./client_request.ts";

/**
 * The result that a request counts as: the first for a prefetched file is no plain hit, and one of
 * larder's own commands is none of a client's.
 */
export type CountedResult = CacheResult | "prefetched" | "command";

export type Body = string | Bytes | ReadableStream<Bytes>;

/**
 * An HTTP response of larder. `Response` costs more than all else about a narinfo in memory (3 of
 * 13 µs). It also hides whether its body is a text or a stream.
 */
export class Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** `null` for HEAD, and where there is none. */
  readonly body: Body | null;
  /** Set for an answer about a path of the cache: how it counts, for the client's pull. */
  counted: CountedResult | undefined;
  /** The NAR file of that path, where it is known. */
  narName: NarName | undefined;
  /** True if it waited for upstreams, though it counts as a hit. */
  hasAsked: boolean;
  /** What failed, for the request's log line. */
  failed: Facts | undefined;

  constructor(body: Body | null, status: number, headers: Readonly<Record<string, string>>) {
    this.body = body;
    this.status = status;
    this.counted = undefined;
    this.narName = undefined;
    this.hasAsked = false;
    this.failed = undefined;
    this.headers = new AnswerHeaders(headers);
  }
}

/** An answer whose body is a file or a stream. */
export class StreamAnswer extends Answer {
  /** The counter of its bytes. */
  readonly served: Series | undefined;
  readonly unsaved: UnsavedBytes | undefined;
  /** Called once the body is sent (`isWhole`), or its connection broke. */
  readonly release: ((isWhole: boolean) => void) | undefined;

  constructor(body: Body, parts: AnswerParts, { served, unsaved, release }: StreamParts) {
    super(body, parts.status, fieldsOf(parts));
    this.served = served;
    this.unsaved = unsaved;
    this.release = release;
  }
}

/** An answer whose body another server sends, as its headers say. */
export class HandedOverAnswer extends Answer {
  /** The length of the body that the other server sends. */
  readonly handedOverBytes: number;

  constructor(parts: AnswerParts, handedOverBytes: number) {
    super(null, parts.status, fieldsOf(parts));
    this.handedOverBytes = handedOverBytes;
  }
}

/** Of how many sent bytes a stored NAR is no saving: an upstream would have sent fewer. */
export interface UnsavedBytes {
  readonly counter: Series;
  of(sentBytes: number): number;
}

export interface StreamParts {
  readonly served?: Series | undefined;
  readonly unsaved?: UnsavedBytes | undefined;
  readonly release?: ((isWhole: boolean) => void) | undefined;
}

/** Anything but visible ASCII with blanks between: a line end would begin another field. */
const BAD_VALUE_REGEXP = /[^\t -~]/;

/** Header fields by lower-case name, one value each. */
class AnswerHeaders {
  readonly #fields = new Map<string, string>();

  constructor(fields: Readonly<Record<string, string>>) {
    for (const name in fields) this.set(name, fields[name] ?? "");
  }

  get(name: string): string | null {
    return this.#fields.get(name) ?? null;
  }

  has(name: string): boolean {
    return this.#fields.has(name);
  }

  /** Throws for a value that contains a line end. */
  set(name: string, value: string): void {
    if (BAD_VALUE_REGEXP.test(value)) throw new TypeError(`Cannot send header ${name}: its value`);
    this.#fields.set(name, value);
  }

  [Symbol.iterator](): MapIterator<[string, string]> {
    return this.#fields[Symbol.iterator]();
  }
}

export interface AnswerParts {
  readonly status: number;
  readonly type: string;
  readonly lifetime: Lifetime;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer with a text, or its bytes. For HEAD it has only the body's length. */
export function textAnswer(text: string | Bytes, head: boolean, parts: AnswerParts): Answer {
  if (!head) return new Answer(text, parts.status, fieldsOf(parts));
  const length = Buffer.byteLength(text);
  return headAnswer({ ...parts, headers: { ...parts.headers, "content-length": String(length) } });
}

/** An answer with a streamed body. Its bytes count in `served`. */
export function streamAnswer(body: Body, parts: AnswerParts, stream: StreamParts = {}): Answer {
  return new StreamAnswer(body, parts, stream);
}

/** The answer to HEAD: the headers of the answer with a body. */
export function headAnswer(parts: AnswerParts): Answer {
  return new Answer(null, parts.status, fieldsOf(parts));
}

/** 304: the client has the current bytes. */
export function notModifiedAnswer(parts: Omit<AnswerParts, "status">): Answer {
  return new Answer(null, 304, fieldsOf(parts));
}

/** Notes on an answer how it counts in its client's pull. */
export function countedAnswer(
  answer: Answer,
  counted: CountedResult,
  narName?: NarName,
): Answer {
  answer.counted = counted;
  answer.narName = narName;
  return answer;
}

/** How the answer to a request counts. */
export function countedAs(
  { cacheResult, isFirstOfPrefetch }: Pick<NarFacts, "cacheResult" | "isFirstOfPrefetch">,
  request: Pick<ClientRequest, "headers">,
): CountedResult {
  if (isByCommand(request)) return "command";
  return isFirstOfPrefetch ? "prefetched" : cacheResult;
}

/**
 * The series of `cache_requests_total` for one kind, by source; `negative` is an absence from
 * memory. Each request with a well-formed name counts in one.
 */
export function requestSeries(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<CountedResult | "negative", Series>> {
  return {
    negative: metrics.series("cache_requests_total", { kind, result: "negative" }),
    HIT: metrics.series("cache_requests_total", { kind, result: "hit" }),
    MISS: metrics.series("cache_requests_total", { kind, result: "miss" }),
    JOINED: metrics.series("cache_requests_total", { kind, result: "joined" }),
    prefetched: metrics.series("cache_requests_total", { kind, result: "prefetched" }),
    command: metrics.series("cache_requests_total", { kind, result: "command" }),
  };
}

/** The series of `served_bytes_total` for one kind, by source. */
export function servedBytes(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<CountedResult, Series>> {
  return {
    HIT: metrics.series("served_bytes_total", { kind, source: "hit" }),
    MISS: metrics.series("served_bytes_total", { kind, source: "miss" }),
    JOINED: metrics.series("served_bytes_total", { kind, source: "joined" }),
    prefetched: metrics.series("served_bytes_total", { kind, source: "prefetched" }),
    command: metrics.series("served_bytes_total", { kind, source: "command" }),
  };
}

/** The status phrase in one plain line, and behind it what was given and what is expected. */
export function statusAnswer(
  status: number,
  head: boolean,
  headers: Readonly<Record<string, string>> = {},
  expected?: string,
): Answer {
  const phrase = STATUS_CODES[status] ?? "Error";
  return lineAnswer(status, expected ? `${phrase}: ${expected}` : phrase, head, headers);
}

/** One plain line that is true at the moment. */
export function lineAnswer(
  status: number,
  line: string,
  head = false,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const parts = { status, type: "text/plain", lifetime: "never", headers } as const;
  return textAnswer(`${line}\n`, head, parts);
}

function fieldsOf(
  { type, lifetime, headers }: Omit<AnswerParts, "status">,
): Readonly<Record<string, string>> {
  return { "content-type": type, "cache-control": CACHE_CONTROL[lifetime], ...headers };
}

/** The field of an answer to a request that may come again in a moment, in seconds. */
export const RETRY_AFTER = { "retry-after": "5" } as const;

const SECONDS_PER_DAY = 24 * 60 * 60;

/**
 * The Cache-Control value of each kind of answer. `no-transform` everywhere: proxies compress text
 * without it, which is no use for small or compressed bodies.
 */
const CACHE_CONTROL = {
  /** Named by the hash of its bytes. */
  immutable: `public, max-age=${365 * SECONDS_PER_DAY}, immutable, no-transform`,
  /** A day: of a path's narinfo, only the signatures change. */
  narinfo: `public, max-age=${SECONDS_PER_DAY}, no-transform`,
  /** A document that should not change, though no hash proves it. */
  document: `public, max-age=${SECONDS_PER_DAY}, no-transform`,
  /** A document that another may replace. */
  changing: "public, max-age=60, no-transform",
  /** Settings of this server. */
  settings: "public, max-age=3600, no-transform",
  /** A missing answer may exist a moment later. */
  never: "no-store, no-transform",
} as const;

type Lifetime = keyof typeof CACHE_CONTROL;

/** The value for an answer that only holders of a token may have: no shared cache may keep it. */
export function forTokenHolders(cacheControl: string): string {
  return cacheControl.replace(/^public,/, "private,");
}

/** True when If-None-Match names `tag`, quotes included; `W/` prefixes do not matter. */
export function isNamed(header: string | null, tag: string): boolean {
  if (header === null) return false;
  if (withoutBlanks(header) === "*") return true;
  return header.split(",").some((one) => withoutBlanks(one).replace(/^W\//, "") === tag);
}
