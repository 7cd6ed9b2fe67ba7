import { BlockList, isIP, isIPv6 } from "node:net";
import { Failure, messageOf } from "../../base/failure.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { NoAnswer } from "../upstream.ts";
import { BUSY_STATUSES } from "../upstream_queue.ts";
import { discard, type HttpUpstreamSettings } from "./upstream_fetch.ts";

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

/** Caches need one or two: to an object store, and to its region. */
const REDIRECTS_MAX = 10;

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

interface FetchOptions {
  readonly method: "GET" | "HEAD";
  readonly client: Pick<HttpClient, "fetch" | "addresses">;
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Fetches, and follows redirects. None leads from https to http. None leads to an address of this
 * machine or its networks, unless the upstream has such an address itself. Throws a Failure
 * "corrupt" for any other. Only the origin of `start` receives `authorization`.
 */
async function fetchFollowing(
  start: URL | string,
  init: FetchOptions,
  authorization: string | undefined,
): Promise<Response> {
  // Plain headers, and no URL: `fetch` reads both again, and most requests have no redirect.
  const credentials = authorization === undefined ? {} : { authorization };
  const { client, ...rest } = init;
  const options = { ...rest, redirect: "manual" } as const;
  let response = await client.fetch(start, {
    ...options,
    headers: { ...init.headers, ...credentials },
  });
  if (!isRedirect(response)) return response;
  const first = new URL(start);
  let url = first;
  let isAtHome = true;
  for (let count = 0; count < REDIRECTS_MAX; count++) {
    const next = await nextUrl(response, url);
    if (next.hostname !== url.hostname) await checkAddress(init, first, next);
    url = next;
    // After another origin, credentials stay away even from the first one.
    isAtHome &&= url.origin === first.origin;
    const headers = { ...init.headers, ...isAtHome ? credentials : {} };
    response = await client.fetch(url, { ...options, headers });
    if (!isRedirect(response)) return response;
  }
  await discard(response);
  throw refusal(`there are over ${REDIRECTS_MAX}`);
}

function isRedirect({ status, headers }: Response): boolean {
  return REDIRECT_STATUSES.has(status) && headers.get("location") !== null;
}

async function nextUrl(response: Response, from: URL): Promise<URL> {
  const location = response.headers.get("location") ?? "";
  await discard(response);
  if (!URL.canParse(location, from)) throw refusal("it leads to no URL");
  const next = new URL(location, from);
  checkScheme(from, next);
  return next;
}

function checkScheme(from: URL, to: URL): void {
  const isHttp = to.protocol === "https:" || to.protocol === "http:";
  if (!isHttp) throw refusal(`it leads to ${to.protocol}`);
  if (from.protocol === "https:" && to.protocol === "http:") {
    throw refusal("it leads from https to http");
  }
}

async function checkAddress(init: FetchOptions, upstream: URL, to: URL): Promise<void> {
  const wanted = new Set(await classesOf(to, init));
  wanted.delete("public");
  if (wanted.size === 0) return;
  const own = await classesOf(upstream, init);
  const strange = [...wanted].find((one) => !own.includes(one));
  if (strange !== undefined) throw refusal(`it leads to a ${strange} address: ${to.host}`);
}

/** The class of each address of the URL's host; none for an unknown host: the request fails. */
async function classesOf(
  { hostname }: URL,
  { client, signal }: FetchOptions,
): Promise<readonly AddressClass[]> {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0) return [classOfAddress(host)];
  if (LOCALHOST_REGEXP.test(host)) return ["loopback"];
  const addresses = await unlessAborted(client.addresses(host), signal);
  return addresses.map(classOfAddress);
}

const LOCALHOST_REGEXP = /(?:^|\.)localhost\.?$/;

function refusal(state: string): Failure {
  return new Failure("corrupt", `Cannot follow redirect: ${state}`);
}

/** The kind of network of an address; "public": in none of the rows below. */
type AddressClass = "loopback" | "link-local" | "private" | "reserved" | "public";

type AddressFamily = "ipv4" | "ipv6";
type ClassRow = readonly [AddressClass, AddressFamily, network: string, prefixLength: number];

/** The registries of special addresses: RFC 6890 and its updates. The first match wins. */
const ROWS: readonly ClassRow[] = [
  ["loopback", "ipv4", "127.0.0.0", 8],
  // A connection to 0.0.0.0 ends at this machine.
  ["loopback", "ipv4", "0.0.0.0", 8],
  ["link-local", "ipv4", "169.254.0.0", 16],
  ["private", "ipv4", "10.0.0.0", 8],
  ["private", "ipv4", "172.16.0.0", 12],
  ["private", "ipv4", "192.168.0.0", 16],
  // Between a provider and its customers.
  ["private", "ipv4", "100.64.0.0", 10],
  ["reserved", "ipv4", "192.0.0.0", 24],
  ["reserved", "ipv4", "198.18.0.0", 15],
  // Multicast, future use, and broadcast.
  ["reserved", "ipv4", "224.0.0.0", 3],
  ["loopback", "ipv6", "::", 127],
  ["link-local", "ipv6", "fe80::", 10],
  ["private", "ipv6", "fc00::", 7],
  ["private", "ipv6", "fec0::", 10],
  ["reserved", "ipv6", "ff00::", 8],
  // Teredo and local NAT64: they embed another address.
  ["reserved", "ipv6", "2001::", 32],
  ["reserved", "ipv6", "64:ff9b:1::", 48],
];

const LISTS = ROWS.map(([addressClass, family, network, prefixLength]) => {
  const list = new BlockList();
  list.addSubnet(network, prefixLength, family);
  return { addressClass, family, list };
});

/** The class of an IP address in text; an IPv6 one without brackets. */
export function classOfAddress(text: string): AddressClass {
  const [plain = ""] = text.split("%");
  const groups = isIPv6(plain) ? groupsOf(plain) : undefined;
  const inner = groups && embeddedIpv4(groups);
  const address = inner ?? plain;
  const wanted = inner === undefined && groups !== undefined ? "ipv6" : "ipv4";
  const found = LISTS.find(({ family, list }) => family === wanted && list.check(address, family));
  return found?.addressClass ?? "public";
}

/** Eight numbers of 16 bits. */
function groupsOf(address: string): readonly number[] {
  // The URL parser knows every notation.
  const written = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [front = "", back] = written.split("::");
  const numbers = (text: string) =>
    text === "" ? [] : text.split(":").map((hex) => parseInt(hex, 16));
  if (back === undefined) return numbers(front);
  const [first, last] = [numbers(front), numbers(back)];
  return [...first, ...new Array(8 - first.length - last.length).fill(0), ...last];
}

/** The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64 or 6to4. */
function embeddedIpv4(groups: readonly number[]): string | undefined {
  const [first, second] = groups;
  const isZero = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0);
  const isLast = isZero(0, 5) && groups[5] === 0xffff ||
    isZero(0, 6) && !isZero(6, 7) ||
    first === 0x64 && second === 0xff9b && isZero(2, 6);
  if (isLast) return ipv4Of(groups[6], groups[7]);
  return first === 0x2002 ? ipv4Of(groups[1], groups[2]) : undefined;
}

function ipv4Of(high = 0, low = 0): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
