import type { Facts } from "../../base/failure.ts";
import type { Logger, LogLevel } from "../../telemetry/logger.ts";
import type { Route } from "../routes/router.ts";

/** A longer path is cut: it is a stranger's text. */
const PATH_CHARS_MAX = 200;

const CHANGING_METHODS = ["POST", "PUT", "DELETE"];

/** How serious the line of a request is: NARs and changes are news, the rest is for debugging. */
export function accessLevel(route: Route | undefined, method: string): LogLevel {
  if (route === undefined) return "debug";
  return route.streams || CHANGING_METHODS.includes(method) ? "info" : "debug";
}

export interface Access {
  readonly method: string;
  readonly path: string;
  readonly route: string;
  readonly isNar: boolean;
  readonly status: number;
  readonly bytes: number;
  readonly durationMs: number;
  readonly outcome: string;
  /** The X-Cache header, where there is one. */
  readonly source: string | null;
  readonly requestId: string;
  /** As `peerAddress` tells it; `undefined` where nobody knows. */
  readonly client: string | undefined;
  /** What the route adds. */
  readonly more: Facts;
}

/** Writes the one line of a request that is over. */
export function logAccess(log: Logger, level: LogLevel, access: Access): void {
  const { method, route, status, bytes, outcome, source, client } = access;
  const facts: Facts = {
    method,
    route,
    path: access.path.slice(0, PATH_CHARS_MAX),
    ...access.more,
    status,
    bytes,
    duration_ms: Math.round(access.durationMs),
    outcome,
    ...(source === null ? {} : { x_cache: source }),
    ...(client === undefined ? {} : { client }),
    request_id: access.requestId,
  };
  log[level](messageOf(access), facts);
}

/** A hit that sends a NAR has the message that the specification gives it. */
function messageOf({ isNar, method, status, source }: Access): string {
  const isServed = isNar && method === "GET" && (status === 200 || status === 206);
  return isServed && source === "HIT" ? "serving nar from cache" : "request";
}
