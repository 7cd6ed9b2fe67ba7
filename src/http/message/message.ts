import { Buffer } from "node:buffer";
import { STATUS_CODES } from "node:http";
import { BlockList, isIPv4, isIPv6 } from "node:net";
import type { Bytes } from "../../base/bytes.ts";
import { COMMAND_HEADER } from "../../base/command_request.ts";
import type { Facts } from "../../base/failure.ts";
import type { RequestHeaders } from "../../base/request_headers.ts";
import type { Stretch } from "../../base/wait_notes.ts";
import type { CacheResult, NarFacts } from "../../cache/nar/nar_answer.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";

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

interface StreamParts {
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

/** A request of another method changes nothing. */
export const CHANGING_METHODS: ReadonlySet<string> = new Set(["POST", "PUT", "DELETE"]);

/** A request for the app. A `Request` is one, too. */
export interface ClientRequest {
  readonly method: string;
  /** Path and query exactly as sent. Those of a whole URL count, too. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** The HTTP version, such as "1.1"; `undefined` if unknown. */
  readonly httpVersion?: string;
  /** The client's address, as `peerAddress` returns it, or as a trusted proxy says. */
  readonly peer?: string;
  /** True if a proxy passed the connection on, and said where from. */
  readonly viaProxy?: boolean;
  /** True if a trusted proxy sent the request. */
  readonly ofTrustedProxy?: boolean;
  /** `null` if the head announces none. The app need not read it. */
  readonly body: ReadableStream<Bytes> | null;
  /** True while clients hold so much that this answer must not add a large copy of its own. */
  readonly savesMemory?: boolean;
  /** Says that the answer waits on purpose: the connection may make room for others. */
  heldBack?(): void;
  /** Refuses the client where the app waits for its body: others need the memory. */
  giveUpBody?(): void;
  /** Aborts when the client leaves before it has the whole answer. */
  readonly signal: AbortSignal;
  /**
   * Aborts also when the client has ended its side of the connection, as a program does that is
   * stopped. It may still read. Default: `signal`.
   */
  readonly hungUp?: AbortSignal;
}

/** True for a request of larder's own commands, which is none of a client's. */
export function isByCommand({ headers }: Pick<ClientRequest, "headers">): boolean {
  return headers.get(COMMAND_HEADER) !== null;
}

/**
 * The end of an answer. Sent whole; cut short, as the client left, larder stopped, or larder closed
 * the connection to a client that took nothing; or broken, as the body is bad.
 */
export type DeliveryEnd = "sent" | CutShort | "broken";

/** Who cut an answer short: the client, larder as it stopped, or larder for its own bounds. */
export type CutShort = "left" | "stopped" | "closed";

/** The delivery of an answer, for metrics and logs. */
export interface Delivery {
  /** Resolves when the answer is sent or has failed. Never rejects. */
  readonly ended: Promise<DeliveryEnd>;
  /** Bytes of the body sent so far, without the framing of chunks. */
  readonly sentBytes: number;
  /** When the client had all that there was, and the body had no more. Default: unknown. */
  readonly waits?: readonly Stretch[];
}

/**
 * Never in a well-formed path: anything but visible ASCII, broken escapes and hidden separators.
 */
const MALFORMED_REGEXP = /[^!-~]|\\|%2f|%5c|%00|%(?![0-9a-f]{2})/i;

/** Names of store paths may have a "?", which Nix does not escape: these paths end behind it. */
const NAMED_BY_STORE_PATH_REGEXP = /^(?:\/upload)?\/(?:log|build-trace-v2|realisations)\//;
const WHOLE_NAME_REGEXP = /\.(?:drv|doi)$/;

/**
 * The path of a URL, decoded, without its query; `undefined` if it is not well-formed. Dot segments
 * stay as they are: neither Deno nor larder resolves them.
 */
export function pathOf(url: string): string | undefined {
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return "/";
  const query = url.indexOf("?", start);
  const path = query < 0 ? url.slice(start) : url.slice(start, endOfPath(url, { start, query }));
  if (MALFORMED_REGEXP.test(path)) return undefined;
  if (!path.includes("%")) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** The end of the path before the query, or of a name that has the first "?" itself. */
function endOfPath(
  url: string,
  { start, query }: { readonly start: number; readonly query: number },
): number {
  const path = url.slice(start, query);
  if (!NAMED_BY_STORE_PATH_REGEXP.test(path) || WHOLE_NAME_REGEXP.test(path)) return query;
  return WHOLE_NAME_REGEXP.test(url) ? url.length : query;
}

/** The query of `ClientRequest.url`, with its "?"; empty if there is none. */
export function queryIn(url: string): string {
  const start = url.indexOf("?");
  return start < 0 ? "" : url.slice(start);
}

/** A name that an answer may repeat, though it is untrusted. */
const PLAIN_NAME_REGEXP = /^[\w-]{1,40}$/;

/** What is wrong with the parameters of a query: each must be one of `known`, and there once. */
export function queryFault(url: string, known: readonly string[]): string | undefined {
  const query = queryIn(url);
  if (query === "") return undefined;
  const seen = new Set<string>();
  for (const name of new URLSearchParams(query).keys()) {
    if (!known.includes(name)) {
      const given = PLAIN_NAME_REGEXP.test(name) ? ` ${name}` : "";
      const expected = known.length === 0 ? "none" : known.join(", ");
      return `unknown parameter${given}: expected ${expected}`;
    }
    if (seen.has(name)) return `parameter ${name} more than once: expected it once`;
    seen.add(name);
  }
  return undefined;
}

/**
 * The words of a field's value, in lower case and without blanks. Folds ASCII letters alone:
 * `toLowerCase` makes "k" of the KELVIN SIGN, and `trim` removes more than blanks.
 */
export function fieldWords(value: string, separator: "," | ";" = ","): readonly string[] {
  return value.split(separator).map((word) => lowerAscii(withoutBlanks(word)));
}

/** A text with its ASCII letters in lower case. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The text from `from`, without spaces and tabs around it. */
export function withoutBlanks(text: string, from = 0): string {
  let start = from;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

/** A parsed `Host` field, or the host of an origin. */
interface HostPort {
  /** A name or an address, in lower case and without brackets. */
  readonly name: string;
  readonly isAddress: boolean;
  /** `undefined`: the default of the scheme. */
  readonly port: number | undefined;
}

export const DEFAULT_PORTS = { http: 80, https: 443 } as const;

const HOST_REGEXP = /^(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,255}))(?::(\d{1,5}))?$/;

/** `undefined` unless the text is exactly one name or address. */
export function parseHost(text: string): HostPort | undefined {
  const [, ipv6, plain, digits] = HOST_REGEXP.exec(lowerAscii(text)) ?? [];
  const name = ipv6 ?? plain;
  const port = digits === undefined ? undefined : Number(digits);
  if (name === undefined || (port ?? 0) > 65_535) return undefined;
  if (ipv6 !== undefined && !isIPv6(ipv6)) return undefined;
  return { name, isAddress: ipv6 !== undefined || isIPv4(name), port };
}

/**
 * True when the client prefers HTML to JSON by name, as browsers do. Programs that accept anything
 * do not.
 */
export function prefersHtml(accept: string | null): boolean {
  const html = qualityOf("text/html", accept);
  return html > 0 && html >= qualityOf("application/json", accept);
}

/** The type's quality from 0 to 1; 0 if the header is missing, malformed or does not name it. */
function qualityOf(type: string, accept: string | null): number {
  for (const range of (accept ?? "").split(",")) {
    const [name = "", ...parameters] = fieldWords(range, ";");
    if (name !== type) continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    if (weight === undefined) return 1;
    return /^q=(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight.slice(2)) : 0;
  }
  return 0;
}

/** The address of all clients of a Unix socket. */
export const UNIX_PEER = "unix";

const MAPPED_REGEXP = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * The address of a connection's peer, without a port; `unix` for a Unix socket. An IPv4 client has
 * the same address on every listener.
 */
export function peerAddress(remote: Deno.Addr): string {
  if (!("hostname" in remote)) return UNIX_PEER;
  return plainAddress(remote.hostname);
}

/** The IPv4 address in an IPv6 one that holds one; else the address itself. */
export function plainAddress(address: string): string {
  return MAPPED_REGEXP.exec(address)?.[1] ?? address;
}

/** True for a peer on the loopback address or the Unix socket; false if unknown. */
export function isOfThisMachine(peer: string | undefined): boolean {
  if (peer === undefined) return false;
  if (isIPv4(peer)) return LOOPBACK.check(peer, "ipv4");
  return peer === UNIX_PEER || isIPv6(peer) && LOOPBACK.check(peer, "ipv6");
}

/** Roles of tokens. Each role includes those before it. */
export const ROLES = ["read", "write", "admin"] as const;

export type Role = typeof ROLES[number];

/** True if a token for `has` may send a request that needs `needs`. */
export function includes(has: Role, needs: Role): boolean {
  return ROLES.indexOf(has) >= ROLES.indexOf(needs);
}

/** Options of each role's tokens. */
export const TOKEN_OPTION: Readonly<Record<Role, string>> = {
  read: "--cache-get-token",
  write: "--cache-put-token",
  admin: "--cache-admin-token",
};

/** The holder of a token. */
export interface Caller {
  /** Name of the token, for the log. */
  readonly name: string;
  readonly role: Role;
}
