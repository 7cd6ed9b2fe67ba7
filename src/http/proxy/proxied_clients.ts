import type { Bytes } from "../../base/bytes.ts";
import { isOfThisMachine, peerAddress } from "../message/peer.ts";
import type { SilentClient, SilentClients } from "../server/silent_clients.ts";
import { type ProxyHeaderFault, readProxyHeader } from "./proxy_header.ts";
import { type ProxyRange, TrustedProxies } from "./trusted_proxies.ts";

/** The first bytes behind a PROXY header, and the address of the client that it names. */
export interface ProxiedClient {
  readonly address: Deno.Addr & { readonly viaProxy: true };
  readonly bytes: Bytes;
}

/** The reason of a closed connection. */
export type ProxyClosed =
  | ProxyHeaderFault
  | "incomplete PROXY header"
  | "PROXY header of an untrusted address";

export interface ProxiedClientsDeps {
  readonly silent: SilentClients;
  /** The proxies that may connect; none: those on this machine. */
  readonly ranges: readonly ProxyRange[];
  /** Called with the reason for each closed connection. */
  readonly closed: (reason: ProxyClosed) => void;
}

type ProxyConnection = SilentClient & Pick<Deno.Conn, "remoteAddr">;

/** Reads the PROXY header of each connection, before anything else of it. */
export class ProxiedClients {
  readonly #deps: ProxiedClientsDeps;
  readonly #trusted: TrustedProxies;

  constructor(deps: ProxiedClientsDeps) {
    this.#deps = deps;
    this.#trusted = new TrustedProxies(deps.ranges);
  }

  /** `undefined` for a closed connection: without a right header, or of no trusted proxy. */
  async open(connection: ProxyConnection): Promise<ProxiedClient | undefined> {
    const { remoteAddr } = connection;
    const { silent, ranges, closed } = this.#deps;
    const peer = peerAddress(remoteAddr);
    if (ranges.length === 0 ? !isOfThisMachine(peer) : !this.#trusted.trusts(peer)) {
      closed("PROXY header of an untrusted address");
      return void connection.close();
    }
    const bytes = await silent.firstBytes(
      connection,
      (some) => readProxyHeader(some).kind !== "more",
    );
    // It has left, or was closed.
    if (bytes === undefined) return undefined;
    const header = readProxyHeader(bytes);
    if (header.kind === "header") {
      const address = { ...header.client ?? remoteAddr, viaProxy: true } as const;
      return { address, bytes: bytes.slice(header.length) };
    }
    closed(header.kind === "refused" ? header.reason : "incomplete PROXY header");
    return void connection.close();
  }
}
