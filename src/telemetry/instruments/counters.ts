import type { Instrument } from "./instrument.ts";
import { LOCK_MODES, LOCK_TYPES } from "./lock_labels.ts";
import { OUTCOMES, REQUEST_LABELS } from "./http_labels.ts";
import { OPERATION_LABELS, OPERATION_OUTCOMES } from "./operation_labels.ts";

/** The counters. Names are without `larder_`. */
export const COUNTERS = {
  http_server_requests_total: {
    help: "Finished HTTP requests by outcome",
    labels: { ...REQUEST_LABELS, status: [] as readonly string[], outcome: OUTCOMES },
    plain: true,
    sparse: true,
  },
  nar_served_total: { help: "NAR files served", labels: {} },
  narinfo_served_total: { help: "Narinfo files served", labels: {} },
  cache_requests_total: {
    help: "Narinfo and NAR requests by result",
    labels: {
      kind: ["narinfo", "nar"],
      result: ["hit", "miss", "joined", "negative", "prefetched", "command"],
    },
  },
  served_bytes_total: {
    help: "Bytes of narinfos and NARs sent, by source",
    labels: {
      kind: ["narinfo", "nar"],
      source: ["hit", "miss", "joined", "prefetched", "command"],
    },
  },
  unsaved_bytes_total: {
    help: "Bytes of hits and joined requests beyond the file that their answers are made of",
    labels: {},
  },
  prefetch_total: {
    help: "Narinfos and NARs that larder fetched ahead of requests, or skipped, by result",
    labels: { kind: ["narinfo", "nar"], result: ["used", "wasted", "failed", "skipped"] },
  },
  upstream_bytes_total: { help: "Bytes of NAR files received from upstreams", labels: {} },
  verification_failures_total: {
    help: "Narinfos and NARs of upstreams that differ from what they must be, by reason",
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
  uploads_total: {
    help: "Uploads by kind and result",
    labels: {
      kind: ["narinfo", "nar", "document"],
      result: ["stored", "known", "refused", "failed"],
    },
  },
  upload_bytes_total: { help: "Bytes of NAR files received from clients", labels: {} },
  nar_not_kept_total: {
    help: "NAR files that were passed through, by reason",
    labels: { reason: ["no_room", "disk_error", "storage_error", "database_error"] },
  },
  recompressed_bytes_total: {
    help: "Bytes of NAR files that larder wrote again in zstd, before and after",
    labels: { form: ["former", "zstd"] },
  },
  recompressed_nars_total: {
    help: "NAR files to write again in zstd, by result",
    labels: { result: ["replaced", "later", "failed"] },
  },
  recompress_seconds_total: {
    help: "Time for NAR files that larder wrote again in zstd, in seconds",
    labels: {},
  },
  evicted_entries_total: { help: "Entries removed to stay below the size limit", labels: {} },
  evicted_bytes_total: { help: "Bytes removed to stay below the size limit", labels: {} },
  lock_acquisitions_total: {
    help: "Attempts to acquire a lock, by result",
    labels: { type: LOCK_TYPES, result: ["success", "failure"], mode: LOCK_MODES },
    when: "redis",
  },
  lock_failures_total: {
    help: "Locks that were not acquired, by reason",
    labels: {
      type: LOCK_TYPES,
      reason: ["timeout", "redis_error", "circuit_breaker"],
      mode: LOCK_MODES,
    },
    when: "redis",
  },
  lock_retry_attempts_total: {
    help: "Further attempts to acquire a lock",
    labels: { type: LOCK_TYPES },
    when: "redis",
  },
  upstream_loops_total: {
    help: "Requests to an upstream that came back to this larder",
    labels: {},
  },
  member_reads_total: {
    help: "NAR files that another member downloads, read from there, by result",
    labels: { result: ["whole", "late", "failed"] },
    when: "redis",
  },
  backend_operations_total: {
    help: "Operations of the database, the store of NAR files and Redis, by outcome",
    labels: { ...OPERATION_LABELS, outcome: OPERATION_OUTCOMES },
    sparse: true,
  },
  telemetry_dropped_total: {
    help: "Records that the OpenTelemetry collector did not accept",
    labels: { signal: ["traces", "metrics", "logs"] },
    when: "otel",
  },
} as const satisfies Readonly<Record<string, Instrument>>;

export type CounterName = keyof typeof COUNTERS;
