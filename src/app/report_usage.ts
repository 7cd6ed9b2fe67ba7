import { messageOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import type { Logger } from "../telemetry/logger.ts";
import { usageReportText } from "./usage_report.ts";

/** The first one is sent as long after the start: what is only tried out is not reported. */
const REPORT_EVERY_MS = 24 * 60 * 60 * 1_000;

const SEND_MAX_MS = 10_000;

/**
 * Reports usage once a day, where it is enabled and a receiver is named, until the result is
 * disposed of. A report that does not arrive is not tried again.
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
  log.info("usage is reported", { url, show: "larder analytics --show" });
  const timer = setInterval(() => void send(settings, url, log), everyMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function send(settings: Settings, url: string, log: Logger): Promise<void> {
  try {
    const answer = await fetch(url, {
      method: "POST",
      // Without these, Deno would add a user agent of its own and languages.
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
    log.debug("usage reported", { status: answer.status });
  } catch (error) {
    log.debug("usage not reported", { error: messageOf(error) });
  }
}
