import type { Section } from "./panel.ts";
import { OF, quantile, rate } from "./selector.ts";

const ASKED = "larder_upstream_request_duration_seconds_count";

/** Panels of upstreams: state, requests, latency and verification. */
export const UPSTREAMS: Section = {
  title: "Upstreams",
  panels: [
    {
      title: "State",
      description:
        "Down: the last requests got no answer. larder probes the upstream, and uses it " +
        "as soon as it answers.",
      kind: "state-timeline",
      unit: "short",
      columns: 24,
      alert: "LarderUpstreamDown",
      targets: [{ expr: `min by (upstream) (larder_upstream_up{${OF}})`, legend: "{{upstream}}" }],
    },
    {
      title: "Failed requests",
      description:
        "Share of requests to an upstream that failed: no answer, an error status, or a " +
        "broken transfer. Above the line for ten minutes, an alert fires.",
      kind: "timeseries",
      unit: "percentunit",
      columns: 8,
      max: 1,
      thresholds: [["green", null], ["red", 0.25]],
      alert: "LarderUpstreamFailing",
      targets: [{
        expr:
          `(sum by (upstream) (${rate(ASKED, 'result=~"timeout|unreachable|status|broken"')}) ` +
          `or 0 * sum by (upstream) (${rate(ASKED)})) / ` +
          `sum by (upstream) (${rate(ASKED, 'result!="cancelled"')})`,
        legend: "{{upstream}}",
      }],
    },
    {
      title: "Latency, 95th percentile",
      description: "To a narinfo, or to the last byte of a NAR. Cancelled requests count too: a " +
        "better response was there before theirs.",
      kind: "timeseries",
      unit: "s",
      columns: 8,
      targets: [{
        expr: quantile(0.95, "larder_upstream_request_duration_seconds", "upstream"),
        legend: "{{upstream}}",
      }],
    },
    {
      title: "Requests by result",
      description: "found and absent are answers. untrusted: no configured key signed the narinfo.",
      kind: "timeseries",
      unit: "reqps",
      columns: 8,
      isStacked: true,
      targets: [{ expr: `sum by (result) (${rate(ASKED)})`, legend: "{{result}}" }],
    },
    {
      title: "Verification failures",
      description: "Narinfos and NARs that larder refused. No client got one whole. " +
        "The log names the upstream.",
      kind: "timeseries",
      unit: "short",
      columns: 12,
      alert: "LarderVerificationFailures",
      targets: [{
        expr:
          `sum by (reason) (increase(larder_verification_failures_total{${OF}}[$__rate_interval]))`,
        legend: "{{reason}}",
      }],
    },
    {
      title: "Prefetches by result",
      description: "used: a client asked within ten minutes. While most are wasted, larder " +
        "prefetches few NARs. skipped: not fetched, to spare an upstream or stored NARs.",
      kind: "timeseries",
      unit: "ops",
      columns: 12,
      isStacked: true,
      targets: [{
        expr: `sum by (kind, result) (${rate("larder_prefetch_total")})`,
        legend: "{{kind}} {{result}}",
      }],
    },
  ],
};
