import type { Facts } from "../base/failure.ts";
import type { Logger, LogLevel } from "../telemetry/logger.ts";
import type { Route } from "./router.ts";

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
  readonly status: number;
  readonly bytes: number;
  readonly durationMs: number;
  readonly outcome: string;
  /** The X-Cache header, where there is one. */
  readonly source: string | null;
  readonly requestId: string;
}

/** Writes the one line of a request that is over. */
export function logAccess(log: Logger, level: LogLevel, access: Access): void {
  const { method, route, status, bytes, outcome, source } = access;
  const facts: Facts = {
    method,
    route,
    path: access.path.slice(0, PATH_CHARS_MAX),
    status,
    bytes,
    duration_ms: Math.round(access.durationMs),
    outcome,
    ...(source === null ? {} : { x_cache: source }),
    request_id: access.requestId,
  };
  log[level]("request", facts);
}
