import { pause } from "../../base/pause.ts";
import { acceptFailureOf, lacksHandles } from "../server/accept_failure.ts";
import { type Link, linkOf } from "./link.ts";
import { Relayed, type RelayedTimes, type RelayReason } from "./relayed.ts";
import { SilentClients } from "./silent_clients.ts";

const SECOND_MS = 1_000;

export interface RelayLimits extends RelayedTimes {
  /** Clients that have sent nothing yet; where there are more the oldest goes. */
  readonly silentMax: number;
  /** Clients that the server within has closed, and that take the rest; the oldest goes. */
  readonly leavingMax: number;
}

/** The server within has its own for what is said inside TLS: see its `PHASE_LIMITS_MS`. */
export const RELAY_LIMITS: RelayLimits = {
  // Some three packets.
  handshakeMs: 20 * SECOND_MS,
  // A little more than the server within waits.
  stallMs: 310 * SECOND_MS,
  lingerMs: 5 * SECOND_MS,
  // A client sends its hello as soon as it is connected.
  silentMax: 1_024,
  leavingMax: 256,
};

export type RelayClosed = RelayReason | "cannot accept" | "too many silent clients";

export interface RelayDeps {
  readonly nowMs: () => number;
  /** Told of clients that are let go, and of connections that could not be had. */
  readonly closed: (reason: RelayClosed) => void;
  /** Told of each client that has a connection within; nothing is passed on before `known`. */
  readonly connected: (link: Link, client: Deno.NetAddr) => void;
  /** Told when such a link is over. */
  readonly disconnected: (link: Link) => void;
  /** Default: `RELAY_LIMITS`. */
  readonly limits?: RelayLimits | undefined;
  readonly sweepEveryMs?: number | undefined;
}

const SWEEP_EVERY_MS = 1_000;

/** Without file handles to accept with, it is tried again after this. */
const ACCEPT_AGAIN_MS = 100;

/** Fewer silent clients than this make too little room: the server within has to make some. */
const ROOM_MIN = 8;

/** Meanwhile the server within has made room, told that there is none. */
const CONNECTS_MAX = 20;

/**
 * Stands between clients and a TLS listener of this machine. Deno cannot end a TLS connection
 * whose handshake is not over, or that takes nothing: closing it leaves the socket open until the
 * client goes (measured, 2.6.8). These sockets here can be closed. And what listens within can be
 * replaced while clients come in.
 */
export class Relay implements Disposable {
  readonly #deps: RelayDeps;
  readonly #open = new Map<Link, Relayed>();
  readonly #leaving = new Set<Relayed>();
  readonly #running = new Set<Promise<void>>();
  readonly #sweeping: ReturnType<typeof setInterval>;
  readonly #limits: RelayLimits;
  readonly #silent: SilentClients;
  /** Connections to the listener within that are being made. */
  readonly #connecting = new Set<Promise<unknown>>();
  #inner: Deno.ConnectOptions;

  constructor(inner: Deno.ConnectOptions, deps: RelayDeps) {
    this.#inner = inner;
    this.#deps = deps;
    this.#limits = deps.limits ?? RELAY_LIMITS;
    this.#silent = new SilentClients(this.#limits.silentMax, deps.nowMs);
    this.#sweeping = setInterval(() => this.#sweep(), deps.sweepEveryMs ?? SWEEP_EVERY_MS);
  }

  /** Takes what comes in until the listener is closed. */
  async serve(listener: Deno.TcpListener): Promise<void> {
    for (;;) {
      try {
        this.#take(await listener.accept());
      } catch (error) {
        const failure = acceptFailureOf(error);
        if (failure === "listener closed") return;
        if (failure === "client gone") continue;
        this.#handlesRanOut();
        await pause(ACCEPT_AGAIN_MS);
      }
    }
  }

  /** The server within knows whose connection this is. */
  known(link: Link): void {
    this.#open.get(link)?.known();
  }

  /** The handshake of this connection is over. */
  secured(link: Link): void {
    this.#open.get(link)?.secured();
  }

  /** The server within has closed its end of this connection. */
  givenUp(link: Link): void {
    const relayed = this.#open.get(link);
    if (relayed === undefined) return;
    relayed.givenUp();
    this.#leaving.add(relayed);
    const [oldest] = this.#leaving;
    if (this.#leaving.size > this.#limits.leavingMax) oldest?.close();
  }

  /** The same in the middle of an answer: its client is not waited for. */
  cut(link: Link): void {
    this.#open.get(link)?.close();
  }

  /** Resolves when every new client goes there, and none is on its way to the one before. */
  async turnTo(inner: Deno.ConnectOptions): Promise<void> {
    this.#inner = inner;
    await Promise.allSettled(this.#connecting);
  }

  /** Resolves when no connection is left. Call it when nothing more is taken. */
  async over(): Promise<void> {
    this.#silent.closeAll();
    await Promise.all(this.#running);
  }

  /** Ends every connection. */
  [Symbol.dispose](): void {
    clearInterval(this.#sweeping);
    this.#silent.closeAll();
    for (const relayed of this.#open.values()) relayed.close();
  }

  #take(client: Deno.TcpConn): void {
    const running = this.#relay(client).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #relay(client: Deno.TcpConn): Promise<void> {
    const beganAtMs = this.#deps.nowMs();
    const hello = await this.#silent.firstBytes(client);
    if (hello === undefined) return;
    const inner = await this.#connected();
    if (inner === undefined) return client.close();
    for (const end of [client, inner]) end.setNoDelay(true);
    const link = linkOf({ relayPort: inner.localAddr.port, innerPort: inner.remoteAddr.port });
    const relayed = new Relayed({ client, inner }, { beganAtMs, nowMs: this.#deps.nowMs });
    this.#open.set(link, relayed);
    this.#deps.connected(link, client.remoteAddr);
    await relayed.run(hello);
    this.#open.delete(link);
    this.#leaving.delete(relayed);
    this.#deps.disconnected(link);
  }

  /** `undefined` when there is no room for it, and none is made. */
  async #connected(): Promise<Deno.TcpConn | undefined> {
    for (let count = 0; count < CONNECTS_MAX; count++) {
      try {
        return await this.#connect();
      } catch (error) {
        // A listener that was just replaced refuses; only missing handles ask for room.
        if (lacksHandles(error)) this.#handlesRanOut();
        await pause(ACCEPT_AGAIN_MS);
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
