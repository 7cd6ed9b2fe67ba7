import type { Bytes } from "../../base/bytes.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import { ProxiedClients, type ProxyClosed } from "../proxy/proxied_clients.ts";
import type { ProxyRange } from "../proxy/trusted_proxies.ts";
import { type Link, linkOf } from "./link.ts";
import { Relayed, type RelayedTimes, type RelayReason } from "./relayed.ts";
import { acceptFailureOf, lacksHandles, SilentClients } from "../server/accepting.ts";

const SECOND_MS = 1_000;

export interface RelayLimits extends RelayedTimes {
  /** Limit of clients that have sent nothing; beyond it, the relay closes the oldest. */
  readonly silentMax: number;
  /**
   * Limit of clients whose inner connection is closed and that still read; beyond it, the relay
   * closes the oldest.
   */
  readonly leavingMax: number;
}

/** Limits outside TLS. The inner server has its own `PHASE_LIMITS_MS`. */
export const RELAY_LIMITS: RelayLimits = {
  // Enough for some three packets.
  handshakeMs: 20 * SECOND_MS,
  // A little more than the inner server's limit.
  stallMs: 310 * SECOND_MS,
  lingerMs: 5 * SECOND_MS,
  // A client normally sends its hello as soon as it is connected.
  silentMax: 1_024,
  leavingMax: 256,
};

export type RelayClosed =
  | RelayReason
  | ProxyClosed
  | "cannot accept"
  | "too many silent clients";

export interface RelayDeps {
  readonly nowMs: () => number;
  /** Called with the reason for each closed client, and each connection that failed. */
  readonly closed: (reason: RelayClosed) => void;
  /**
   * Called with each client that has an inner connection. The relay forwards nothing before
   * `known`.
   */
  readonly connected: (link: Link, client: Deno.NetAddr) => void;
  /** Called when such a link is closed. */
  readonly disconnected: (link: Link) => void;
  /** Default: `RELAY_LIMITS`. */
  readonly limits?: RelayLimits | undefined;
  /** Set if each connection begins with a PROXY header: the proxies that may connect. */
  readonly proxyRanges?: readonly ProxyRange[] | undefined;
  readonly sweepEveryMs?: number | undefined;
}

interface Begun {
  readonly hello: Bytes;
  readonly address: Deno.NetAddr;
}

const SWEEP_EVERY_MS = 1_000;

/** Time between two tries to accept without file handles. */
const ACCEPT_AGAIN_MS = 100;

/** Minimum of silent clients at which the relay, not the server, frees connections. */
const ROOM_MIN = 8;

/** Tries to connect, while the inner server makes room. */
const CONNECTS_MAX = 20;

/**
 * Stands between clients and a TLS listener on this machine. Deno cannot end a TLS connection
 * during its handshake, or one whose client stalls: the closed socket stays open until the client
 * goes (measured, 2.6.8). The relay can close its sockets. It also allows replacing the listener
 * while clients connect.
 */
export class Relay implements Disposable {
  readonly #deps: RelayDeps;
  readonly #open = new Map<Link, Relayed>();
  readonly #leaving = new Set<Relayed>();
  readonly #running = new Set<Promise<void>>();
  readonly #sweeping: Timer;
  readonly #limits: RelayLimits;
  readonly #silent: SilentClients;
  readonly #proxied: ProxiedClients | undefined;
  /** Connections to the inner listener that are being made. */
  readonly #connecting = new Set<Promise<unknown>>();
  #inner: Deno.ConnectOptions;

  constructor(inner: Deno.ConnectOptions, deps: RelayDeps) {
    this.#inner = inner;
    this.#deps = deps;
    this.#limits = deps.limits ?? RELAY_LIMITS;
    this.#silent = new SilentClients(this.#limits.silentMax, deps.nowMs);
    const { proxyRanges: ranges, closed } = deps;
    this.#proxied = ranges && new ProxiedClients({ silent: this.#silent, ranges, closed });
    this.#sweeping = clock.every(deps.sweepEveryMs ?? SWEEP_EVERY_MS, () => this.#sweep());
  }

  /** Accepts clients until the listener is closed. */
  async serve(listener: Deno.TcpListener): Promise<void> {
    for (;;) {
      try {
        this.#take(await listener.accept());
      } catch (error) {
        const failure = acceptFailureOf(error);
        if (failure === "listener closed") return;
        if (failure === "client gone") continue;
        this.#handlesRanOut();
        await clock.pause(ACCEPT_AGAIN_MS);
      }
    }
  }

  /** The inner server knows this connection's client. */
  known(link: Link): void {
    this.#open.get(link)?.known();
  }

  /** The handshake of this connection is done. */
  secured(link: Link): void {
    this.#open.get(link)?.secured();
  }

  /** The inner server has closed this connection. */
  innerClosed(link: Link): void {
    const relayed = this.#open.get(link);
    if (relayed === undefined) return;
    relayed.innerClosed();
    this.#leaving.add(relayed);
    const [oldest] = this.#leaving;
    if (this.#leaving.size > this.#limits.leavingMax) oldest?.close();
  }

  /** The inner server has closed it in the middle of an answer: drops the client at once. */
  abort(link: Link): void {
    this.#open.get(link)?.close();
  }

  /** Resolves when every new client goes to `inner`, and none is connecting to the one before. */
  async switchTo(inner: Deno.ConnectOptions): Promise<void> {
    this.#inner = inner;
    await Promise.allSettled(this.#connecting);
  }

  /** Resolves when no connection is left. Call it after closing the listener. */
  async ended(): Promise<void> {
    this.#silent.closeAll();
    await Promise.all(this.#running);
  }

  /** Closes every connection. */
  [Symbol.dispose](): void {
    this.#sweeping.cancel();
    this.#silent.closeAll();
    for (const relayed of this.#open.values()) relayed.close();
  }

  #take(client: Deno.TcpConn): void {
    const running = this.#relay(client).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #relay(client: Deno.TcpConn): Promise<void> {
    const beganAtMs = this.#deps.nowMs();
    const opened = await this.#begin(client);
    if (opened === undefined) return;
    const { hello, address } = opened;
    const inner = await this.#connected();
    if (inner === undefined) return client.close();
    for (const end of [client, inner]) end.setNoDelay(true);
    const link = linkOf({ relayPort: inner.localAddr.port, innerPort: inner.remoteAddr.port });
    const relayed = new Relayed({ client, inner }, { beganAtMs, nowMs: this.#deps.nowMs });
    this.#open.set(link, relayed);
    this.#deps.connected(link, address);
    await relayed.run(hello);
    this.#open.delete(link);
    this.#leaving.delete(relayed);
    this.#deps.disconnected(link);
  }

  /** The client's address and first bytes; `undefined` if it left or was closed. */
  async #begin(client: Deno.TcpConn): Promise<Begun | undefined> {
    const address = client.remoteAddr;
    if (this.#proxied === undefined) {
      const hello = await this.#silent.firstBytes(client);
      return hello && { hello, address };
    }
    const proxied = await this.#proxied.open(client);
    if (proxied === undefined) return undefined;
    const { bytes } = proxied;
    const hello = bytes.length > 0 ? bytes : await this.#silent.firstBytes(client);
    return hello && { hello, address: proxied.address as Deno.NetAddr };
  }

  /** `undefined` if no file handle is left for it. */
  async #connected(): Promise<Deno.TcpConn | undefined> {
    for (let count = 0; count < CONNECTS_MAX; count++) {
      try {
        return await this.#connect();
      } catch (error) {
        // A replaced listener refuses, too; only missing handles need room.
        if (lacksHandles(error)) this.#handlesRanOut();
        await clock.pause(ACCEPT_AGAIN_MS);
      }
    }
    return undefined;
  }

  async #connect(): Promise<Deno.TcpConn> {
    const connecting = Deno.connect(this.#inner);
    this.#connecting.add(connecting);
    try {
      return await connecting;
    } finally {
      this.#connecting.delete(connecting);
    }
  }

  #handlesRanOut(): void {
    const isRoom = this.#silent.makeRoom() >= ROOM_MIN;
    this.#deps.closed(isRoom ? "too many silent clients" : "cannot accept");
  }

  #sweep(): void {
    const silent = this.#silent.closeOverdue(this.#limits.handshakeMs);
    for (let count = 0; count < silent; count++) this.#deps.closed("incomplete TLS handshake");
    for (const relayed of this.#open.values()) {
      const reason = relayed.overdue(this.#limits);
      if (reason === undefined) continue;
      if (reason !== "client stays connected") this.#deps.closed(reason);
      relayed.close();
    }
  }
}
