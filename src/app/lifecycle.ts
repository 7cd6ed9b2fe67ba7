import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { App } from "./build_app.ts";
import type { Listener } from "./listen.ts";
import type { ServiceManager } from "./service_manager.ts";

/** Time limit for requests and downloads in flight. */
const DRAIN_MAX_MS = 20_000;

/** Time for the final steps: exports, the log, and the database's last checkpoint. */
const CLOSING_MAX_MS = 30_000;

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;
type StopSignal = typeof STOP_SIGNALS[number];

/** The exit statuses by which shells report a fatal signal. */
const KILLED_STATUS = { SIGTERM: 143, SIGINT: 130 } as const;

/**
 * Ctrl-C reaches every process of a terminal, and `deno task`, npm and others forward it. A second
 * signal within this time is the same key press.
 */
const CTRL_C_ECHO_MS = 500;

/** Resolves at the first stop signal. A second one ends the process at once. */
export function stopSignal(): Promise<StopSignal> {
  const { promise, resolve } = Promise.withResolvers<StopSignal>();
  onStopSignal(resolve);
  return promise;
}

/** Aborts at the first stop signal, until disposed of. A second one ends the process at once. */
export interface StopWatch extends Disposable {
  readonly signal: AbortSignal;
}

/** The stop signals of a command that can end early and go on in its next run. */
export function stopWatch(): StopWatch {
  const stopping = new AbortController();
  const unlisten = onStopSignal((name) => stopping.abort(new Error(`stopped by ${name}`)));
  return { signal: stopping.signal, [Symbol.dispose]: unlisten };
}

/**
 * Calls `stop` at the first stop signal. A second one ends the process at once, unless it belongs
 * to the same Ctrl-C. Returns a function that removes the listeners.
 */
function onStopSignal(stop: (signal: StopSignal) => void): () => void {
  const hasTerminal = [Deno.stdin, Deno.stdout, Deno.stderr].some((one) => one.isTerminal());
  const meaningOf = stopSignals(hasTerminal);
  const removals = STOP_SIGNALS.map((signal) => {
    const listener = () => {
      const meaning = meaningOf(signal);
      if (meaning === "stop") stop(signal);
      if (typeof meaning === "number") Deno.exit(meaning);
    };
    Deno.addSignalListener(signal, listener);
    return () => Deno.removeSignalListener(signal, listener);
  });
  return () => removals.forEach((remove) => remove());
}

/** Tells what the next signal means: stop, nothing more, or the end at once, with a status. */
export function stopSignals(
  hasTerminal: boolean,
): (signal: StopSignal) => "stop" | "same" | number {
  let stoppedAtMs: number | undefined;
  return (signal) => {
    if (stoppedAtMs === undefined) {
      stoppedAtMs = clock.nowMs();
      return "stop";
    }
    const sinceMs = clock.nowMs() - stoppedAtMs;
    const isSame = hasTerminal && signal === "SIGINT" && sinceMs < CTRL_C_ECHO_MS;
    return isSame ? "same" : KILLED_STATUS[signal];
  };
}

export interface DrainParts {
  readonly app: Pick<App, "stopping" | "downloadsOver">;
  readonly listener: Pick<Listener, "shutdown" | "retire">;
  readonly service: Pick<ServiceManager, "stopping">;
  readonly log: Pick<Logger, "event">;
  /** Time with `/readyz` at 503 and new connections accepted. */
  readonly delayMs: number;
}

/** Waits for requests and downloads, within a time limit. */
export async function drain(parts: DrainParts): Promise<void> {
  const { app, listener, service, log, delayMs } = parts;
  service.stopping(delayMs + DRAIN_MAX_MS + CLOSING_MAX_MS);
  app.stopping();
  listener.retire();
  if (delayMs > 0) await clock.pause(delayMs);
  const over = Promise.all([listener.shutdown(), app.downloadsOver()]).then(() => true);
  const ended = await clock.within(over, DRAIN_MAX_MS);
  if (!ended) log.event("requests-aborted", { limit_ms: DRAIN_MAX_MS });
}
