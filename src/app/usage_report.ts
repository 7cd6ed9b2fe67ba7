import denoJson from "../../deno.json" with { type: "json" };
import { messageOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";

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
  readonly storage: "local" | "s3";
  /** The number alone. */
  readonly upstreams: number;
  /** Exponent of the power of two below the size limit in bytes; `null`: none is set. */
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
    storage: settings["cache.storage-s3-bucket"] === undefined ? "local" : "s3",
    upstreams: settings["cache.upstream-url"].length,
    size_limit_log2: typeof limit === "number" ? Math.floor(Math.log2(limit)) : null,
    prometheus: settings["prometheus.enabled"],
    otel: settings["otel.enabled"],
  };
}

/** The report's JSON text. */
export function usageReportText(settings: Settings): string {
  return `${JSON.stringify(usageReport(settings), null, 2)}\n`;
}

/** Interval, and delay of the first report: short trials are not reported. */
const REPORT_EVERY_MS = 24 * 60 * 60 * 1_000;

const SEND_MAX_MS = 10_000;

/**
 * Sends a usage report once a day, if enabled and with a receiver, until disposed of. Does not
 * retry.
 */
export function reportUsage(
  settings: Settings,
  log: Logger,
  everyMs = REPORT_EVERY_MS,
): Disposable {
  const url = settings["analytics.reporting-url"];
  if (!settings["analytics.reporting-enabled"] || url === undefined) {
    return { [Symbol.dispose]() {} };
  }
  log.info("usage reports enabled", {
    url,
    hint: "larder analytics --show prints the report",
  });
  const timer = clock.every(everyMs, () => void send(settings, url, log));
  return { [Symbol.dispose]: () => timer.cancel() };
}

async function send(settings: Settings, url: string, log: Logger): Promise<void> {
  using limit = clock.deadline(SEND_MAX_MS);
  try {
    const answer = await fetch(url, {
      method: "POST",
      // Without these, Deno would send its own user agent and languages.
      headers: {
        "content-type": "application/json",
        "user-agent": "larder",
        "accept-language": "*",
      },
      body: usageReportText(settings),
      redirect: "error",
      signal: limit.signal,
    });
    await answer.body?.cancel();
    log.debug("usage report sent", { status: answer.status });
  } catch (error) {
    log.debug("usage report failed", { error: messageOf(error) });
  }
}
