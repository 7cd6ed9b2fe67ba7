import { Failure, reasonOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import { ProxiedListener } from "../http/proxy/proxied_listener.ts";
import type { ProxyRange } from "../http/proxy/trusted_proxies.ts";
import { HttpServer, type HttpServerDeps, type Incoming } from "../http/server/http_server.ts";
import type { Place } from "../http/tls/relay_messages.ts";
import type { TlsFiles } from "../http/tls/tls_listener.ts";
import { listenOnSocket, type SocketAccess } from "./unix_socket.ts";

type Address = Settings["server.addr"];

/**
 * Limit of connections, at some 10 KiB each; one cache has fewer clients. If file handles run out
 * earlier, the server lowers its limit.
 */
const CONNECTIONS_MAX = 8_192;

export interface ListenParts {
  readonly server: HttpServerDeps;
  readonly address: Address;
  /** Permissions of a Unix socket. */
  readonly socket: SocketAccess;
  /** Certificate and key for HTTPS; without them it is HTTP. */
  readonly tls?: TlsFiles | undefined;
  /** Set if each connection begins with a PROXY header: the proxies that may connect. */
  readonly proxyRanges?: readonly ProxyRange[] | undefined;
  /** Limit of connections from one address; default: a quarter of all. */
  readonly perAddressMax?: number | undefined;
}

export interface Listener extends AsyncDisposable {
  /** The address for people: a URL, or `unix:` and a path. */
  readonly url: string;
  /** Closes each connection after one more answer. */
  retire(): void;
  /** Closes the listener; resolves when running requests are answered. */
  shutdown(): Promise<void>;
}

/** A listening socket; disposing of it closes it. */
interface OpenListener extends Disposable {
  readonly url: string;
  /** Set for a listener behind a relay: closes it, and resolves when all clients have left. */
  ended?(): Promise<void>;
}

/** Starts to serve. Throws a Failure that explains an unusable address. */
export async function listen(parts: ListenParts): Promise<Listener> {
  const { address, socket, tls, perAddressMax } = parts;
  const server = new HttpServer(parts.server, { connectionsMax: CONNECTIONS_MAX, perAddressMax });
  try {
    const opened = address.kind === "unix"
      ? await openSocket(address.path, socket)
      : await openOnAnyHost(address, (host) =>
        tls === undefined ? openPort(host) : openTls(host, tls));
    const owned = new DisposableStack();
    owned.use(opened);
    return {
      url: opened.url,
      retire: () => server.retire(),
      async shutdown() {
        const ended = opened.ended?.();
        if (ended === undefined) owned.dispose();
        await server.shutdown();
        await ended;
        owned.dispose();
      },
      async [Symbol.asyncDispose]() {
        owned.dispose();
        await server[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await server[Symbol.asyncDispose]();
    if (error instanceof Failure) throw error;
    throw new Failure("broken", explain(address, error), {}, error);
  }

  async function openTls(place: Place, files: TlsFiles): Promise<OpenListener> {
    const { TlsListener } = await import("../http/tls/tls_listener.ts");
    const { log, nowMs } = parts.server;
    const relay = { proxyRanges: parts.proxyRanges };
    const opened = await TlsListener.open({ place, files, log, nowMs, server, relay });
    return {
      url: urlOf("https", opened.place),
      ended: () => opened.ended(),
      [Symbol.dispose]: () => opened[Symbol.dispose](),
    };
  }

  function openPort(place: Place): OpenListener {
    const listener = Deno.listen({ ...place });
    return serveFrom(listener, urlOf("http", listener.addr));
  }

  async function openSocket(path: string, access: SocketAccess): Promise<OpenListener> {
    return serveFrom(await listenOnSocket(path, access), `unix:${path}`);
  }

  function serveFrom(listener: Incoming & { close(): void }, url: string): OpenListener {
    const { proxyRanges: ranges, server: { nowMs } } = parts;
    if (ranges === undefined) {
      void server.serve(listener);
      return { url, [Symbol.dispose]: () => listener.close() };
    }
    const closed = (reason: string) => server.closed(reason);
    const proxied = new ProxiedListener(listener, { ranges, closed, nowMs });
    void server.serve(proxied);
    return { url, [Symbol.dispose]: () => proxied[Symbol.dispose]() };
  }
}

/** Opens a listener. Without a host name: IPv6, which includes IPv4 on most machines, else IPv4. */
async function openOnAnyHost(
  { hostname, port }: Address & { kind: "tcp" },
  open: (place: Place) => OpenListener | Promise<OpenListener>,
): Promise<OpenListener> {
  if (hostname !== undefined) return await open({ hostname, port });
  try {
    return await open({ hostname: "::", port });
  } catch (error) {
    if (error instanceof Failure || error instanceof Deno.errors.AddrInUse) throw error;
    return await open({ hostname: "0.0.0.0", port });
  }
}

function urlOf(scheme: "http" | "https", { hostname, port }: Place): string {
  const everywhere = hostname === "::" || hostname === "0.0.0.0";
  const host = everywhere ? "localhost" : hostname.includes(":") ? `[${hostname}]` : hostname;
  return `${scheme}://${host}:${port}`;
}

function explain(address: Address, error: unknown): string {
  const shown = address.kind === "unix"
    ? `unix:${address.path}`
    : `${address.hostname ?? ""}:${address.port}`;
  if (error instanceof Deno.errors.AddrInUse) {
    return `Cannot listen on ${shown}: another program does; stop it, or give another address ` +
      "with --server-addr";
  }
  return `Cannot listen on ${shown}: ${reasonOf(error)}`;
}
