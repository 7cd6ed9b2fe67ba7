import type { Tracer } from "../../telemetry/tracer.ts";

/** What the trace of whoever asks an upstream has to do with the request. */
export interface UpstreamTrace {
  /** Let the upstream go on with the trace; none where it is told of none. */
  headers(): Readonly<Record<string, string>>;
  /** Told the status of the answer that counts. */
  answered(status: number): void;
}

/** For requests that are not traced. */
export const NO_UPSTREAM_TRACE: UpstreamTrace = { headers: () => ({}), answered() {} };

/** For requests that are made in spans; with `propagates`, upstreams are told of them. */
export function upstreamTraceOf(tracer: Tracer, propagates: boolean): UpstreamTrace {
  return {
    headers: () => propagates ? tracer.headers() : {},
    answered: (status) => tracer.note({ "http.response.status_code": status }),
  };
}
