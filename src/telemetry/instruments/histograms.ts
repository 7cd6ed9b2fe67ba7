import { REQUEST_LABELS } from "./http_labels.ts";
import type { Instrument } from "./instrument.ts";
import { LOCK_MODES, LOCK_TYPES } from "./lock_labels.ts";
import { OPERATION_LABELS } from "./operation_labels.ts";

interface HistogramRow extends Instrument {
  /** Ascending upper bounds, in the unit of the name. Values above the last one count, too. */
  readonly buckets: readonly number[];
}

/** Buckets in seconds, from a narinfo in memory to a NAR of some GiB over a slow line. */
const REQUEST_BUCKETS = [
  ...[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5, 10, 30, 120, 600],
] as const;

/** The histograms. Names are without `larder_`. */
export const HISTOGRAMS = {
  http_server_request_duration_seconds: {
    help: "From the request to the last byte of its answer, in seconds",
    labels: REQUEST_LABELS,
    plain: true,
    sparse: true,
    buckets: REQUEST_BUCKETS,
  },
  upstream_request_duration_seconds: {
    help: "From a request to an upstream to its narinfo, or the last byte of its NAR, in seconds",
    labels: {
      upstream: "upstreams",
      result: [
        ...["found", "absent", "timeout", "unreachable", "status", "garbage", "untrusted"],
        "broken",
        "cancelled",
      ],
    },
    sparse: true,
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600],
  },
  eviction_duration_seconds: {
    help: "Duration of an eviction run, in seconds",
    labels: {},
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300],
  },
  backend_operation_duration_seconds: {
    help: "From an operation of a back end to its answer or failure, in seconds",
    labels: OPERATION_LABELS,
    sparse: true,
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
  },
  lock_hold_duration_seconds: {
    help: "From the acquisition of a lock to its release, in seconds",
    labels: { type: LOCK_TYPES, mode: LOCK_MODES },
    when: "redis",
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1_800],
  },
} as const satisfies Readonly<Record<string, HistogramRow>>;

export type HistogramName = keyof typeof HISTOGRAMS;
