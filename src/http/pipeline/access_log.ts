import type { Facts } from "../../base/failure.ts";
import { REQUEST_LINE } from "../../telemetry/events.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { CHANGING_METHODS } from "../message/client_request.ts";
import type { Route } from "../routes/router.ts";

/** Paths are untrusted: the log cuts longer ones. */
const PATH_CHARS_MAX = 200;

type AccessLevel = "debug" | "info";

/**
 * The log level of a request: info for NARs, changes, and failures of routes that people and their
 * programs ask; else debug.
 */
export function accessLevel(
  route: Route | undefined,
  method: string,
  hasFailed: boolean,
): AccessLevel {
  if (route === undefined) return "debug";
  if (route.streams || CHANGING_METHODS.has(method)) return "info";
  return hasFailed && !route.cached ? "info" : "debug";
}

export interface AccessLine {
  readonly method: string;
  readonly path: string;
  readonly route: string;
  readonly isNar: boolean;
  readonly status: number;
  readonly bytes: number;
  readonly durationMs: number;
  readonly outcome: string;
  /** The X-Cache header, if any. */
  readonly cacheResult: string | null;
  readonly requestId: string;
  /** Address from `peerAddress`; `undefined` if unknown. */
  readonly client: string | undefined;
  /** Name of the token, if the request needed one. */
  readonly token: string | undefined;
  /** Further facts from the route. */
  readonly more: Facts;
}

/** Logs a finished request in one line. */
export function logAccess(log: Logger, level: AccessLevel, access: AccessLine): void {
  const { method, route, status, bytes, outcome, cacheResult, client, token } = access;
  const facts: Facts = {
    method,
    route,
    path: access.path.slice(0, PATH_CHARS_MAX),
    ...access.more,
    status,
    bytes,
    duration_ms: Math.round(access.durationMs),
    outcome,
    ...(cacheResult === null ? {} : { x_cache: cacheResult }),
    ...(client === undefined ? {} : { client }),
    ...(token === undefined ? {} : { token }),
    request_id: access.requestId,
  };
  log[level](messageOf(access), facts);
}

/** 307: the store serves it. */
const SERVED = [200, 206, 307];

/** The log message. The specification fixes the one for a NAR from the cache. */
function messageOf({ isNar, method, status, cacheResult }: AccessLine): string {
  const isServed = isNar && method === "GET" && SERVED.includes(status);
  return isServed && cacheResult === "HIT" ? "serving nar from cache" : REQUEST_LINE;
}
