import type { Section } from "./panel.ts";
import { OF, quantile, rate } from "./selector.ts";

const GIB = 1024 ** 3;

/** Panels of stored bytes, free disk and eviction. */
export const SPACE: Section = {
  title: "Space",
  panels: [
    {
      title: "Size against limit",
      description: "Bytes of stored NAR files. At the limit, larder evicts what was used longest " +
        "ago. What pins protect stays.",
      kind: "timeseries",
      unit: "bytes",
      columns: 8,
      alert: "LarderPinsFillTheCache",
      targets: [
        { expr: `larder_cache_size_bytes{${OF}}`, legend: "stored, {{instance}}" },
        { expr: `larder_pinned_bytes{${OF}}`, legend: "pinned, {{instance}}" },
        { expr: `larder_cache_max_size_bytes{${OF}} > 0`, legend: "limit, {{instance}}" },
      ],
    },
    {
      title: "Free disk",
      description: "Of the storage's file system. Below the line, an alert fires. " +
        "Without room, larder passes NARs through.",
      kind: "timeseries",
      unit: "bytes",
      columns: 8,
      thresholds: [["red", null], ["green", 2 * GIB]],
      alert: "LarderDiskNearlyFull",
      targets: [{ expr: `larder_storage_free_bytes{${OF}}`, legend: "{{instance}}" }],
    },
    {
      title: "NARs not kept",
      description: "Clients got them, and the next request fetches them again. no_room: pins and " +
        "downloads fill the limit. disk_error: the disk is full or fails.",
      kind: "timeseries",
      unit: "short",
      columns: 8,
      alert: "LarderNarsNotKept",
      targets: [{
        expr: `sum by (reason) (increase(larder_nar_not_kept_total{${OF}}[$__rate_interval]))`,
        legend: "{{reason}}",
      }],
    },
    {
      title: "Evicted bytes",
      description: "A cache that evicts in a day what it may hold is too small for its clients.",
      kind: "timeseries",
      unit: "Bps",
      columns: 8,
      alert: "LarderEvictionChurn",
      targets: [{ expr: `sum(${rate("larder_evicted_bytes_total")})`, legend: "evicted" }],
    },
    {
      title: "Evicted entries",
      description: "Store paths whose narinfo and NAR were removed.",
      kind: "timeseries",
      unit: "ops",
      columns: 8,
      targets: [{ expr: `sum(${rate("larder_evicted_entries_total")})`, legend: "entries" }],
    },
    {
      title: "Duration of eviction runs, 95th percentile",
      description: "Requests are answered during a run. A long one lists many entries.",
      kind: "timeseries",
      unit: "s",
      columns: 8,
      targets: [{ expr: quantile(0.95, "larder_eviction_duration_seconds"), legend: "run" }],
    },
  ],
};
