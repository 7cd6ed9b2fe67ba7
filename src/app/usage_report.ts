import denoJson from "../../deno.json" with { type: "json" };
import type { Settings } from "../config/options.ts";

/**
 * What is reported where `analytics.reporting-enabled` is on and a receiver is named: what sort of
 * larder runs, and nothing of who runs it, for whom, or with which paths. Documented field by
 * field in docs/observability.md.
 */
export interface UsageReport {
  /** Of this form. */
  readonly report: 1;
  readonly version: string;
  readonly deno: string;
  readonly os: string;
  readonly arch: string;
  readonly database: string;
  readonly storage: "local";
  /** How many, never which. */
  readonly upstreams: number;
  /** The power of two below the size limit in bytes, as its exponent; `null`: no limit. */
  readonly size_limit_log2: number | null;
  readonly prometheus: boolean;
  readonly otel: boolean;
}

/** The same for `larder analytics --show` and for a running server: it depends on nothing else. */
export function usageReport(settings: Settings): UsageReport {
  const limit = settings["cache.max-size"];
  return {
    report: 1,
    version: denoJson.version,
    deno: Deno.version.deno,
    os: Deno.build.os,
    arch: Deno.build.arch,
    database: settings["cache.database-url"].kind,
    storage: "local",
    upstreams: settings["cache.upstream-url"].length,
    size_limit_log2: limit === undefined ? null : Math.floor(Math.log2(limit)),
    prometheus: settings["prometheus.enabled"],
    otel: settings["otel.enabled"],
  };
}

/** The report as it goes over the wire. */
export function usageReportText(settings: Settings): string {
  return `${JSON.stringify(usageReport(settings), null, 2)}\n`;
}
