import {
  type Context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  trace,
  type TraceState,
} from "@opentelemetry/api";
import type { HeaderReader } from "../tracer.ts";

const TRACEPARENT_REGEXP = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** What W3C Trace Context wants to be passed on at least. */
const TRACESTATE_CHARS_MAX = 512;

/** The caller's span; `undefined`: a request without one, or a malformed header. */
export function remoteContext(headers: HeaderReader): Context | undefined {
  const traceparent = headers.get("traceparent");
  if (traceparent === null) return undefined;
  const [, traceId = "", spanId = "", flags = "00"] = TRACEPARENT_REGEXP.exec(traceparent) ?? [];
  const remote = { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true };
  if (!isSpanContextValid(remote)) return undefined;
  const traceState = traceStateOf(headers.get("tracestate"));
  return trace.setSpanContext(ROOT_CONTEXT, {
    ...remote,
    ...(traceState === undefined ? {} : { traceState }),
  });
}

/** What other tracers need to find the trace again. One bad member spoils all, as specified. */
function traceStateOf(text: string | null): TraceState | undefined {
  if (text === null || text.length > TRACESTATE_CHARS_MAX) return undefined;
  const members = text.split(",").map((member) => member.trim()).filter((member) => member !== "");
  // It leaves out what it cannot read, and what is there twice.
  const state = createTraceState(text);
  return members.length > 0 && state.serialize() === members.join(",") ? state : undefined;
}
