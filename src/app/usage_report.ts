import denoJson from "../../deno.json" with { type: "json" };
import type { Settings } from "../config/options.ts";

/**
 * The usage report, documented in docs/observability.md. It describes the kind of installation. It
 * contains no identity, no host and no store path.
 */
export interface UsageReport {
  /** Version of this format. */
  readonly report: 1;
  readonly version: string;
  readonly deno: string;
  readonly os: string;
  readonly arch: string;
  readonly database: string;
  readonly storage: "local";
  /** The number alone. */
  readonly upstreams: number;
  /** Exponent of the power of two below the size limit in bytes; `null`: no limit. */
  readonly size_limit_log2: number | null;
  readonly prometheus: boolean;
  readonly otel: boolean;
}

/** The report for `larder analytics --show` and for a running server: both are equal. */
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

/** The report's JSON text. */
export function usageReportText(settings: Settings): string {
  return `${JSON.stringify(usageReport(settings), null, 2)}\n`;
}
