import { messageOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import type { Logger } from "../telemetry/logger.ts";
import { usageReportText } from "./usage_report.ts";

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
  const timer = setInterval(() => void send(settings, url, log), everyMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function send(settings: Settings, url: string, log: Logger): Promise<void> {
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
      signal: AbortSignal.timeout(SEND_MAX_MS),
    });
    await answer.body?.cancel();
    log.debug("usage report sent", { status: answer.status });
  } catch (error) {
    log.debug("usage report failed", { error: messageOf(error) });
  }
}
