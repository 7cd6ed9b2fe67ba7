import { isIP } from "node:net";
import { Failure } from "../../base/failure.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { type AddressClass, classOfAddress } from "./address_class.ts";
import { discard } from "./failed_reading.ts";

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
export async function fetchFollowing(
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
