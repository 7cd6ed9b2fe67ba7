import { type Facts, reasonOf } from "../base/failure.ts";
import { clock, dice } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";

export interface ServiceManagerDeps {
  /** An environment variable; `undefined` if unset or empty. */
  readonly variable: (name: string) => string | undefined;
  /** Folder for the sending socket, which has a name for a moment only. */
  readonly folder: string;
  readonly log: Logger;
}

/** The service manager that started this process: systemd, or another with its protocol. */
export interface ServiceManager extends Disposable {
  /** larder answers requests. From here on it sends messages to the watchdog, if that is on. */
  ready(status: string): void;
  /** larder ends within this time. */
  stopping(withinMs: number): void;
}

const NOBODY: ServiceManager = {
  ready: () => undefined,
  stopping: () => undefined,
  [Symbol.dispose]: () => undefined,
};

/** Twice within the limit, as sd_watchdog_enabled(3) recommends. */
const WATCHDOG_PART = 2;

/**
 * The service manager of `$NOTIFY_SOCKET`. Without that variable nothing is sent. A failure is
 * logged, as larder serves all the same.
 */
export function serviceManager(deps: ServiceManagerDeps): ServiceManager {
  const path = deps.variable("NOTIFY_SOCKET");
  if (path === undefined) return NOBODY;
  const open = new DisposableStack();
  const outage = new OutageLog(deps.log, "service-manager-notified");
  try {
    const socket = unnamedSocket(deps.folder);
    open.defer(() => socket.close());
    return notifying(path, { socket, open, outage, deps });
  } catch (error) {
    outage.failed("service-manager-not-notified", factsOf(path, error));
    open.dispose();
    return NOBODY;
  }
}

interface Channel {
  readonly socket: Deno.DatagramConn;
  readonly open: DisposableStack;
  readonly outage: OutageLog<"service-manager-notified">;
  readonly deps: ServiceManagerDeps;
}

function notifying(path: string, { socket, open, outage, deps }: Channel): ServiceManager {
  const encoder = new TextEncoder();
  function send(...lines: readonly string[]): void {
    const to = { transport: "unixpacket", path } as const;
    socket.send(encoder.encode(lines.join("\n")), to).then(
      () => outage.worked(),
      (error) => outage.failed("service-manager-not-notified", factsOf(path, error)),
    );
  }
  return {
    ready(status) {
      send("READY=1", `STATUS=${status}`);
      const everyMs = watchdogMs(deps.variable) / WATCHDOG_PART;
      if (!(everyMs >= 1)) return;
      // On the thread that answers requests: a stuck thread sends nothing.
      const timer = clock.every(everyMs, () => send("WATCHDOG=1"));
      open.defer(() => timer.cancel());
    },
    stopping: (withinMs) =>
      send("STOPPING=1", `EXTEND_TIMEOUT_USEC=${withinMs * 1_000}`, "STATUS=stopping"),
    [Symbol.dispose]: () => open.dispose(),
  };
}

/** Deno sends datagrams from sockets with a name alone. The name is free again at once. */
function unnamedSocket(folder: string): Deno.DatagramConn {
  const path = `${folder}/.${dice.uuid()}`;
  const socket = Deno.listenDatagram({ transport: "unixpacket", path });
  Deno.removeSync(path);
  return socket;
}

/** The watchdog's time limit; NaN if it is off, or concerns another process. */
function watchdogMs(variable: ServiceManagerDeps["variable"]): number {
  const pid = variable("WATCHDOG_PID");
  if (pid !== undefined && Number(pid) !== Deno.pid) return NaN;
  return Number(variable("WATCHDOG_USEC")) / 1_000;
}

function factsOf(path: string, error: unknown): Facts {
  return { path, error: reasonOf(error) };
}
