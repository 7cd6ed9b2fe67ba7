import type { Instrument } from "./instrument.ts";

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
    help: "HTTP requests whose answer is not out yet",
    labels: {},
    plain: true,
  },
  in_flight_downloads: { help: "NAR files that are being fetched", labels: {} },
  cache_size_bytes: { help: "Bytes of all kept NAR files", labels: {} },
  cache_max_size_bytes: { help: "Limit of the cache's size in bytes; 0 is no limit", labels: {} },
  pinned_bytes: { help: "Bytes of kept NAR files that pins protect", labels: {} },
  storage_free_bytes: {
    help: "Bytes that the storage's file system has free",
    labels: {},
    sparse: true,
  },
  upstream_up: {
    help: "Whether an upstream answers: 1, or 0 when what was last asked of it did not come",
    labels: { upstream: "upstreams" },
  },
  build_info: {
    help: "Always 1; what runs here is in the labels",
    labels: { version: [] as readonly string[], deno: [] as readonly string[] },
    sparse: true,
  },
  upstream_count_healthy: {
    help: "Upstreams that answer",
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
    help: "When the process started, in seconds since 1970",
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
    help: "Memory that the JavaScript heap of the main thread uses, in bytes",
    labels: {},
    plain: true,
  },
  process_open_fds: {
    help: "Open file descriptors; 0 where none can be counted",
    labels: {},
    plain: true,
  },
} as const satisfies Readonly<Record<string, ReadRow>>;

export type GaugeName = keyof typeof GAUGES;
