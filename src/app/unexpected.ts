import { messageOf } from "../base/failure.ts";
import { withoutUrlSecrets } from "../base/url_secrets.ts";
import type { Logger } from "../telemetry/logger.ts";

/**
 * Logs uncaught errors and goes on, until disposed of. A bug in one request must not end the builds
 * of all others.
 */
export function logUnexpected(log: Logger): Disposable {
  const rejected = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    report(event.reason);
  };
  const thrown = (event: ErrorEvent) => {
    event.preventDefault();
    report(event.error);
  };
  const report = (error: unknown) => {
    const stack = withoutUrlSecrets(error instanceof Error ? error.stack ?? "" : "");
    log.event("unexpected-failure", { error: messageOf(error), stack });
  };
  globalThis.addEventListener("unhandledrejection", rejected);
  globalThis.addEventListener("error", thrown);
  return {
    [Symbol.dispose]() {
      globalThis.removeEventListener("unhandledrejection", rejected);
      globalThis.removeEventListener("error", thrown);
    },
  };
}
