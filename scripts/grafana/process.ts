import type { Section } from "./panel.ts";
import { OF, rate } from "./selector.ts";

const DAY_S = 86_400;

/** larder as a process of its machine. */
export const PROCESS: Section = {
  title: "Process",
  panels: [
    {
      title: "Memory",
      description: "Resident memory, and the JavaScript heap of the main thread in it.",
      kind: "timeseries",
      unit: "bytes",
      columns: 8,
      targets: [
        { expr: `process_resident_memory_bytes{${OF}}`, legend: "resident, {{instance}}" },
        { expr: `process_heap_bytes{${OF}}`, legend: "heap, {{instance}}" },
      ],
    },
    {
      title: "Processor",
      description: "Cores in use. Verifying NARs takes most of it, in threads of its own.",
      kind: "timeseries",
      unit: "short",
      columns: 8,
      targets: [{ expr: rate("process_cpu_seconds_total"), legend: "{{instance}}" }],
    },
    {
      title: "Open files",
      description: "File descriptors: connections, stored NARs and the database.",
      kind: "timeseries",
      unit: "short",
      columns: 8,
      targets: [{ expr: `process_open_fds{${OF}}`, legend: "{{instance}}" }],
    },
    {
      title: "Files that wait for their check",
      description: "Downloaded NARs before their hash is known. Many of them for long: the " +
        "processor is too slow for the line, or --cache-verify-threads is too low.",
      kind: "timeseries",
      unit: "short",
      columns: 8,
      targets: [{ expr: `larder_verification_backlog_files{${OF}}`, legend: "{{instance}}" }],
    },
    {
      title: "Certificate expires in",
      description: "With --server-tls-cert only. larder takes up a new certificate by itself.",
      ifEmpty: "No certificate: larder runs without --server-tls-cert",
      kind: "timeseries",
      unit: "s",
      columns: 8,
      thresholds: [["red", null], ["green", 14 * DAY_S]],
      alert: "LarderCertificateExpires",
      targets: [{
        expr: `larder_tls_certificate_expiry_timestamp_seconds{${OF}} - time()`,
        legend: "{{instance}}",
      }],
    },
    {
      title: "Telemetry dropped",
      description:
        "With --otel-enabled only: records that the OpenTelemetry receiver did not take.",
      ifEmpty: "No telemetry: larder runs without --otel-enabled",
      kind: "timeseries",
      unit: "short",
      columns: 8,
      alert: "LarderTelemetryDropped",
      targets: [{
        expr: `sum by (signal) (increase(larder_telemetry_dropped_total{${OF}}[$__rate_interval]))`,
        legend: "{{signal}}",
      }],
    },
  ],
};
