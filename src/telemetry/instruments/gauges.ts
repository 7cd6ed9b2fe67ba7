import type { Instrument } from "./instrument.ts";
import { BACK_ENDS, MEMBER_STATES } from "./operation_labels.ts";

interface ReadRow extends Instrument {
  /** The Prometheus type; default: a gauge. */
  readonly type?: "counter" | "untyped";
}

/**
 * The gauges, read at each scrape; 0 until `Metrics.gauge` sets their reader. Names are without
 * `larder_`. A reader must be cheap: it scans no table.
 */
export const GAUGES = {
  http_server_active_requests: {
    help: "HTTP requests in flight",
    labels: {},
    plain: true,
  },
  in_flight_downloads: { help: "Downloads of NAR files in flight", labels: {} },
  verification_backlog_files: { help: "Downloaded files that wait for their check", labels: {} },
  verification_backlog_bytes: { help: "Bytes of these files", labels: {} },
  verification_backlog_seconds: {
    help: "How long the oldest of these files has waited, in seconds",
    labels: {},
  },
  recompress_backlog_files: {
    help: "Kept NAR files that are still to be written again in zstd, counted every ten minutes",
    labels: {},
  },
  recompressed_kept_bytes: {
    help: "Bytes of the kept NAR files that larder wrote again in zstd, counted likewise",
    labels: {},
  },
  in_flight_uploads: { help: "Uploads of NAR files in flight", labels: {} },
  cache_size_bytes: { help: "Bytes that count in the cache's limit", labels: {} },
  database_bytes: { help: "Bytes of the database", labels: {} },
  cache_max_size_bytes: {
    help: "Limit of the cache's size in bytes, set or left by the disk; 0 is no limit",
    labels: {},
  },
  pinned_bytes: {
    help: "Bytes of stored NAR files protected by pins, without lost ones",
    labels: {},
  },
  storage_free_bytes: {
    help: "Free bytes of the storage's file system",
    labels: {},
    sparse: true,
  },
  tls_certificate_expiry_timestamp_seconds: {
    help: "Expiry of the certificate for HTTPS, in seconds since 1970",
    labels: {},
    sparse: true,
  },
  upstream_up: {
    help: "Health of an upstream: 1 is up, 0 is down",
    labels: { upstream: "upstreams" },
  },
  backend_up: {
    help: "Health of a back end: 1 is up, 0 is an outage that larder has met",
    labels: { backend: BACK_ENDS },
    sparse: true,
  },
  members: {
    help: "Larders on this storage, this one included, by state",
    labels: { state: MEMBER_STATES },
  },
  build_info: {
    help: "Always 1; the labels describe this build",
    labels: { version: [] as readonly string[], deno: [] as readonly string[] },
    sparse: true,
  },
  upstream_count_healthy: {
    help: "Upstreams that are up",
    labels: {},
    when: "analytics",
  },
  upstream_count_total: {
    help: "Configured upstreams",
    labels: {},
    when: "analytics",
    // The specification fixes the name, whose ending promtool rejects for a gauge.
    type: "untyped",
  },
  process_start_time_seconds: {
    help: "Start of the process, in seconds since 1970",
    labels: {},
    plain: true,
  },
  process_cpu_seconds_total: {
    help: "Processor time used, user and system, in seconds",
    labels: {},
    plain: true,
    type: "counter",
  },
  process_resident_memory_bytes: {
    help: "Resident memory in bytes",
    labels: {},
    plain: true,
  },
  process_heap_bytes: {
    help: "Used JavaScript heap of the main thread, in bytes",
    labels: {},
    plain: true,
  },
  process_open_fds: {
    help: "Open file descriptors; 0 if unknown",
    labels: {},
    plain: true,
  },
} as const satisfies Readonly<Record<string, ReadRow>>;

export type GaugeName = keyof typeof GAUGES;
