import type { Section } from "./panel.ts";
import { OF } from "./selector.ts";

const GIB = 1024 ** 3;
const REQUESTS = "larder_cache_requests_total";

/** The figures that answer whether it works, and its savings. */
export const OVERVIEW: Section = {
  title: "At a glance",
  panels: [
    {
      title: "Hit ratio, 24 h",
      description: "Requests that no upstream had to answer, of all for paths that exist. " +
        "Known absences and first requests for prefetched paths are no hits.",
      kind: "stat",
      unit: "percentunit",
      columns: 5,
      max: 1,
      thresholds: [["red", null], ["yellow", 0.5], ["green", 0.8]],
      alert: "LarderHitRatioLow",
      targets: [{
        expr: `sum(increase(${REQUESTS}{${OF},result=~"hit|joined"}[24h])) / ` +
          `sum(increase(${REQUESTS}{${OF},result=~"hit|joined|miss|prefetched"}[24h]))`,
        legend: "hits",
        isInstant: true,
      }],
    },
    {
      title: "Saved, 24 h",
      description: "Bytes that clients got and no upstream had to send for them.",
      kind: "stat",
      unit: "bytes",
      columns: 5,
      thresholds: [["blue", null]],
      targets: [{
        expr: `sum(increase(larder_served_bytes_total{${OF},source=~"hit|joined"}[24h]))`,
        legend: "saved",
        isInstant: true,
      }],
    },
    {
      title: "Upstreams up",
      description: "Upstreams that answer, and those that do not. " +
        "What only a down one has is a 404 until it is back.",
      kind: "stat",
      unit: "short",
      columns: 5,
      thresholds: [["green", null], ["red", 1]],
      alert: "LarderUpstreamDown",
      targets: [
        {
          expr: `sum(min by (upstream) (larder_upstream_up{${OF}}))`,
          legend: "up",
          isNeutral: true,
        },
        { expr: `sum(1 - min by (upstream) (larder_upstream_up{${OF}}))`, legend: "down" },
      ],
    },
    {
      title: "Space left",
      description: "The disk: free bytes, which an alert watches. " +
        "The limit: a cache that uses all of it is normal, and evicts.",
      kind: "stat",
      unit: "bytes",
      columns: 5,
      thresholds: [["red", null], ["yellow", 2 * GIB], ["green", 10 * GIB]],
      alert: "LarderDiskNearlyFull",
      targets: [
        { expr: `min(larder_storage_free_bytes{${OF}})`, legend: "on the disk" },
        {
          expr: `min((larder_cache_max_size_bytes{${OF}} > 0) - larder_cache_size_bytes{${OF}})`,
          legend: "below the limit",
          isNeutral: true,
        },
      ],
    },
    {
      title: "Running for",
      description: "Time since the last start. A short one that nobody caused is a crash.",
      kind: "stat",
      unit: "s",
      columns: 4,
      thresholds: [["yellow", null], ["green", 3_600]],
      alert: "LarderRestarts",
      targets: [{ expr: `time() - max(process_start_time_seconds{${OF}})`, legend: "running" }],
    },
  ],
};
