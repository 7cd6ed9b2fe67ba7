import type { Section } from "./panel.ts";
import { OF, quantile, rate } from "./selector.ts";

const REQUESTS = "larder_cache_requests_total";
const TO_LAST_BYTE = "To the last byte: a large NAR takes as long as its client takes it.";

/** Panels of clients' requests and responses. */
export const CLIENTS: Section = {
  title: "Clients",
  panels: [
    {
      title: "Hit ratio",
      description:
        "Of requests for paths that exist. After an update of nixpkgs it falls for some " +
        "hours. Below the line for two hours, an alert fires.",
      kind: "timeseries",
      unit: "percentunit",
      columns: 8,
      max: 1,
      thresholds: [["red", null], ["green", 0.5]],
      alert: "LarderHitRatioLow",
      targets: [{
        expr: `sum by (kind) (${rate(REQUESTS, 'result=~"hit|joined"')}) / ` +
          `sum by (kind) (${rate(REQUESTS, 'result=~"hit|joined|miss|prefetched"')})`,
        legend: "{{kind}}",
      }],
    },
    {
      title: "Bytes served and fetched",
      description: "Served bytes by their source, beside what upstreams sent. " +
        "The gap between them is what larder saves.",
      kind: "timeseries",
      unit: "Bps",
      columns: 8,
      targets: [
        {
          expr: `sum by (source) (${rate("larder_served_bytes_total")})`,
          legend: "served, {{source}}",
        },
        { expr: `sum(${rate("larder_upstream_bytes_total")})`, legend: "fetched" },
      ],
    },
    {
      title: "Requests by result",
      description:
        "hit: stored. joined: shared a running download. prefetched: first request for " +
        "what larder had fetched ahead. negative: known to be absent.",
      kind: "timeseries",
      unit: "reqps",
      columns: 8,
      isStacked: true,
      targets: [{ expr: `sum by (result) (${rate(REQUESTS)})`, legend: "{{result}}" }],
    },
    {
      title: "Latency, median",
      description: TO_LAST_BYTE,
      kind: "timeseries",
      unit: "s",
      columns: 8,
      targets: [{
        expr: quantile(0.5, "http_server_request_duration_seconds", "route"),
        legend: "{{route}}",
      }],
    },
    {
      title: "Latency, 99th percentile",
      description: `${TO_LAST_BYTE} Narinfos stay below a second unless upstreams are slow.`,
      kind: "timeseries",
      unit: "s",
      columns: 8,
      targets: [{
        expr: quantile(0.99, "http_server_request_duration_seconds", "route"),
        legend: "{{route}}",
      }],
    },
    {
      title: "Responses by status",
      description: "404 is usual: Nix asks for paths that nobody has built. " +
        "A 5xx on a route of the cache is a defect.",
      kind: "timeseries",
      unit: "reqps",
      columns: 8,
      isStacked: true,
      alert: "LarderServerErrors",
      targets: [{
        expr: `sum by (status) (${rate("http_server_requests_total")})`,
        legend: "{{status}}",
      }],
    },
    {
      title: "Responses that did not end whole",
      description: "aborted: the client left. broken: larder cut the transfer, so that no client " +
        "takes bad bytes for whole.",
      kind: "timeseries",
      unit: "reqps",
      columns: 8,
      alert: "LarderAnswersBroken",
      targets: [{
        expr: `sum by (outcome) (${rate("http_server_requests_total", 'outcome!="complete"')})`,
        legend: "{{outcome}}",
      }],
    },
    {
      title: "In flight",
      description: "Requests, downloads from upstreams and uploads of clients at this moment.",
      kind: "timeseries",
      unit: "short",
      columns: 8,
      targets: [
        { expr: `sum(http_server_active_requests{${OF}})`, legend: "requests" },
        { expr: `sum(larder_in_flight_downloads{${OF}})`, legend: "downloads" },
        { expr: `sum(larder_in_flight_uploads{${OF}})`, legend: "uploads" },
      ],
    },
    {
      title: "Uploads by result",
      description: "stored: verified and kept. known: the same was there. refused: the client's " +
        "fault. failed: no room, or the client left.",
      kind: "timeseries",
      unit: "ops",
      columns: 8,
      isStacked: true,
      targets: [{
        expr: `sum by (result) (${rate("larder_uploads_total")})`,
        legend: "{{result}}",
      }],
    },
  ],
};
