import { Failure, messageOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import type { Completion } from "../http/request_observer.ts";
import type { Handle } from "../http/shell.ts";

type Address = Settings["server.addr"];

export interface Listener {
  /** Where it can be reached, for people: a URL, or `unix:` and a path. */
  readonly url: string;
  /** Takes no new connection; resolves when the requests under way are answered. */
  shutdown(): Promise<void>;
}

/** Starts to answer. Throws a Failure that says what is wrong with the address. */
export async function listen(
  address: Address,
  answer: Handle,
): Promise<Listener> {
  const handle = (request: Request, info: Deno.ServeHandlerInfo) =>
    answer(request, completionOf(info));
  const quiet = { onListen() {} };
  try {
    if (address.kind === "unix") {
      await removeStaleSocket(address.path);
      const server = Deno.serve({ path: address.path, ...quiet }, handle);
      return { url: `unix:${address.path}`, shutdown: () => server.shutdown() };
    }
    const server = serveTcp(address.hostname, address.port, handle);
    const { hostname, port } = server.addr;
    const everywhere = hostname === "::" || hostname === "0.0.0.0";
    const host = everywhere ? "localhost" : hostname.includes(":") ? `[${hostname}]` : hostname;
    return { url: `http://${host}:${port}`, shutdown: () => server.shutdown() };
  } catch (error) {
    throw new Failure("broken", explain(address, error), {}, error);
  }

  function serveTcp(hostname: string | undefined, port: number, handler: typeof handle) {
    if (hostname !== undefined) return Deno.serve({ hostname, port, ...quiet }, handler);
    try {
      // Takes IPv4 too, where the machine has not been told otherwise.
      return Deno.serve({ hostname: "::", port, ...quiet }, handler);
    } catch (error) {
      if (error instanceof Deno.errors.AddrInUse) throw error;
      return Deno.serve({ hostname: "0.0.0.0", port, ...quiet }, handler);
    }
  }
}

const sent = () => "sent" as const;
const unsure = () => "unsure" as const;

/**
 * What Deno.serve tells of an answer. It rejects (in 2.6.8) also for a body with Content-Length
 * that was sent whole, since nobody asks for its end behind the last byte.
 */
export function completionOf(info: Deno.ServeHandlerInfo): Completion {
  return () => info.completed.then(sent, unsure);
}

function explain(address: Address, error: unknown): string {
  const shown = address.kind === "unix"
    ? `unix:${address.path}`
    : `${address.hostname ?? ""}:${address.port}`;
  if (error instanceof Deno.errors.AddrInUse) {
    return `Cannot listen on ${shown}: another program does; stop it, or give another address ` +
      "with --server-addr";
  }
  return `Cannot listen on ${shown}: ${messageOf(error)}`;
}

/**
 * A socket file that nobody answers on is what a killed server left. Throws `AddrInUse` when
 * somebody does.
 */
async function removeStaleSocket(path: string): Promise<void> {
  try {
    if (!Deno.lstatSync(path).isSocket) return;
    using _answered = await Deno.connect({ transport: "unix", path });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    if (!(error instanceof Deno.errors.ConnectionRefused)) throw error;
    return Deno.removeSync(path);
  }
  throw new Deno.errors.AddrInUse(path);
}
