import { within } from "../base/deadline.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { App } from "./build_app.ts";
import type { Listener } from "./listen.ts";

/** How long what is in flight may take to end; systemd kills after 90 s. */
const DRAIN_MAX_MS = 20_000;

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** As shells report a program that a signal ended. */
const KILLED_STATUS = { SIGTERM: 143, SIGINT: 130 } as const;

/** Resolves at the first signal to stop. A second one ends the process at once. */
export function stopSignal(): Promise<typeof STOP_SIGNALS[number]> {
  const { promise, resolve } = Promise.withResolvers<typeof STOP_SIGNALS[number]>();
  let stopping = false;
  for (const signal of STOP_SIGNALS) {
    Deno.addSignalListener(signal, () => {
      if (stopping) Deno.exit(KILLED_STATUS[signal]);
      stopping = true;
      resolve(signal);
    });
  }
  return promise;
}

/** Lets requests and downloads end, for a limited time. */
export async function drain(app: App, listener: Listener, log: Logger): Promise<void> {
  app.stopping();
  const over = Promise.all([listener.shutdown(), app.downloadsOver()]).then(() => true);
  const ended = await within(over, DRAIN_MAX_MS);
  if (!ended) log.warn("requests cut off at shutdown", { limit_ms: DRAIN_MAX_MS });
}
