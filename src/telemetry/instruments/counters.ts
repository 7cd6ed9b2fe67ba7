import type { Instrument } from "./instrument.ts";
import { OUTCOMES, REQUEST_LABELS } from "./http_labels.ts";

/** The counters. Names are without `larder_`. */
export const COUNTERS = {
  http_server_requests_total: {
    help: "HTTP requests that are over, by how their answer ended",
    labels: { ...REQUEST_LABELS, status: [] as readonly string[], outcome: OUTCOMES },
    plain: true,
    sparse: true,
  },
  nar_served_total: { help: "NAR files served", labels: {} },
  narinfo_served_total: { help: "Narinfo files served", labels: {} },
  cache_requests_total: {
    help: "Narinfo and NAR requests by how they were answered",
    labels: { kind: ["narinfo", "nar"], result: ["hit", "miss", "joined", "negative"] },
  },
  served_bytes_total: {
    help: "Bytes of narinfos and NARs sent, by where they came from",
    labels: { kind: ["narinfo", "nar"], source: ["hit", "miss", "joined"] },
  },
  upstream_bytes_total: { help: "Bytes of NAR files received from upstreams", labels: {} },
  verification_failures_total: {
    help: "What an upstream sent and was refused, by what was wrong",
    labels: {
      reason: [
        "signature",
        "narinfo",
        "file_size",
        "file_hash",
        "nar_size",
        "nar_hash",
        "undecodable",
      ],
    },
  },
  nar_not_kept_total: {
    help: "NAR files that were sent to a client, but not kept, by why",
    labels: { reason: ["no_room", "disk_error"] },
  },
  evicted_entries_total: { help: "Entries removed to stay below the size limit", labels: {} },
  evicted_bytes_total: { help: "Bytes removed to stay below the size limit", labels: {} },
  telemetry_dropped_total: {
    help: "Records that could not be handed to the OpenTelemetry collector",
    labels: { signal: ["traces", "metrics", "logs"] },
    when: "otel",
  },
} as const satisfies Readonly<Record<string, Instrument>>;

export type CounterName = keyof typeof COUNTERS;
