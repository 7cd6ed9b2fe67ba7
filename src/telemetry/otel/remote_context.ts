import {
  type Context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  trace,
  type TraceState,
} from "@opentelemetry/api";
import type { RequestHeaders } from "../../base/request_headers.ts";

/** A later version may append fields; version ff is invalid (W3C Trace Context, 3.2.2.1 and 4). */
const TRACEPARENT_REGEXP =
  /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** The length that W3C Trace Context requires to forward. */
const TRACESTATE_CHARS_MAX = 512;

/** The caller's span; `undefined` without a well-formed header. */
export function remoteContext(headers: RequestHeaders): Context | undefined {
  const traceparent = headers.get("traceparent");
  if (traceparent === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "00", more] =
    TRACEPARENT_REGEXP.exec(traceparent) ?? [];
  if (version === "00" && more !== undefined) return undefined;
  const remote = { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true };
  if (!isSpanContextValid(remote)) return undefined;
  const traceState = traceStateOf(headers.get("tracestate"));
  return trace.setSpanContext(ROOT_CONTEXT, {
    ...remote,
    ...(traceState === undefined ? {} : { traceState }),
  });
}

/** The state of other tracers. The specification drops all if one member is malformed. */
function traceStateOf(text: string | null): TraceState | undefined {
  if (text === null || text.length > TRACESTATE_CHARS_MAX) return undefined;
  const members = text.split(",").map((member) => member.trim()).filter((member) => member !== "");
  // The library drops unreadable and repeated members.
  const state = createTraceState(text);
  return members.length > 0 && state.serialize() === members.join(",") ? state : undefined;
}
