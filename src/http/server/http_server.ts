import { pause } from "../../base/pause.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { acceptFailureOf } from "./accept_failure.ts";
import { ByAddress } from "./by_address.ts";
import { peerAddress } from "../message/peer.ts";
import { ClosedLog } from "./closed_log.ts";
import { Connection, type ConnectionDeps } from "./connection.ts";
import type { Phase } from "./activity.ts";
import { incomplete, stalled } from "./crowd.ts";
import type { Socket } from "./request_reader.ts";
import { OVERDUE_REASON, PHASE_LIMITS_MS, type PhaseLimits } from "./overdue.ts";

export interface HttpServerDeps extends Pick<ConnectionDeps, "handle" | "refuse"> {
  readonly log: Logger;
  readonly nowMs: () => number;
  /** Open at the same time; who comes then takes the place of one that has asked nothing. */
  readonly connectionsMax: number;
  /** Of those, for one address; default: a quarter. */
  readonly perAddressMax?: number | undefined;
  /** Default: `PHASE_LIMITS_MS`. */
  readonly limitsMs?: PhaseLimits;
  /** How often connections are looked at. */
  readonly sweepEveryMs?: number;
  /** Default: `STALLED_MS`. */
  readonly stalledMs?: number;
  /** Default: `STALLED_BYTES_MAX`. */
  readonly stalledBytesMax?: number;
  /** Default: `MORE_AFTER_MS`. */
  readonly moreAfterMs?: number;
}

/** Where connections come from. */
export interface Incoming {
  accept(): Promise<Socket>;
}

/** Some of the open connections, by `keys`. */
type Among = Pick<ReadonlyMap<Connection, unknown> | ReadonlySet<Connection>, "keys" | "size">;

const SWEEP_EVERY_MS = 1_000;

/** So many make room at once: a flood costs one look at all connections for each of these. */
const MAKE_ROOM_SHARE = 1 / 64;

/** Who takes nothing for so long gives way to others, where there is no other place. */
const STALLED_MS = 30_000;

const ASKED_TOO_SLOWLY: ReadonlySet<Phase> = new Set(["head", "body", "skipping"]);

/** Of all connections, where nothing else is asked for. */
const ADDRESS_SHARE = 1 / 4;

/** Pieces of answers that wait for clients which take nothing; the oldest go beyond it. */
const STALLED_BYTES_MAX = 64 * 1024 * 1024;

/** After so many sweeps a client that takes nothing is no fast one. */
const SHED_TICKS = 2;

/** Of the handles that the system gives, once connections have taken all of them. */
const HANDLES_SHARE = 0.75;

/** What ran out twice in this time ran out once: room takes a moment to be there. */
const RAN_OUT_AGAIN_MS = 2_000;

/** So long nothing may run out before more connections are taken again, so many times as many. */
const MORE_AFTER_MS = 10_000;
const MORE_FACTOR = 1.5;

/** Without file handles to accept with, it is tried again after this. */
const ACCEPT_AGAIN_MS = 100;

/** Serves HTTP/1 on connections, closes those that stand still, and keeps their number down. */
export class HttpServer {
  readonly #deps: HttpServerDeps;
  readonly #connectionDeps: ConnectionDeps;
  readonly #open = new Map<Connection, Promise<void>>();
  readonly #byAddress = new ByAddress<Connection>();
  readonly #closed: ClosedLog;
  readonly #clock: { count: number; date: string };
  readonly #sweeping: ReturnType<typeof setInterval>;
  #connectionsMax: number;
  #isStopping = false;
  #ranOutAtMs = -Infinity;

  constructor(deps: HttpServerDeps) {
    this.#deps = deps;
    this.#connectionsMax = deps.connectionsMax;
    this.#closed = new ClosedLog(deps.log, deps.nowMs);
    this.#clock = { count: 0, date: dateOf(deps.nowMs()) };
    this.#connectionDeps = {
      handle: deps.handle,
      refuse: deps.refuse,
      refused: (reason) => this.#closed.count(reason),
      ticks: this.#clock,
      isStopping: () => this.#isStopping,
    };
    this.#sweeping = setInterval(() => this.#sweep(), this.#sweepEveryMs);
  }

  get #sweepEveryMs(): number {
    return this.#deps.sweepEveryMs ?? SWEEP_EVERY_MS;
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** How many are taken at this moment. */
  get openMax(): number {
    return this.#connectionsMax;
  }

  /** Takes what comes in until accepting fails for good, as it does once the source is closed. */
  async serve(incoming: Incoming): Promise<void> {
    for (;;) {
      try {
        this.#add(await incoming.accept());
      } catch (error) {
        const failure = acceptFailureOf(error);
        if (this.#isStopping || failure === "listener closed") return;
        if (failure === "client gone") continue;
        this.handlesRanOut();
        await pause(ACCEPT_AGAIN_MS);
      }
    }
  }

  /** There are no file handles left to accept with, here or in front: room is made. */
  handlesRanOut(): void {
    this.#closed.count("cannot accept", "warn");
    const nowMs = performance.now();
    if (nowMs - this.#ranOutAtMs < RAN_OUT_AGAIN_MS) return;
    this.#ranOutAtMs = nowMs;
    this.#leaveHandles();
    this.#makeRoom();
  }

  /** Lets requests under way be answered; resolves when no connection is left. */
  async shutdown(): Promise<void> {
    this.#isStopping = true;
    for (const connection of incomplete(this.#open.keys())) connection.close();
    await this.#over();
  }

  /** Ends every connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    for (const connection of this.#open.keys()) connection.close();
    await this.#over();
  }

  #add(socket: Socket): void {
    const full = this.#fullFor(peerAddress(socket.remoteAddr));
    if (full !== undefined) {
      this.#closed.count(full, "warn");
      return socket.close();
    }
    // Head and body may leave in two writes, and the second one must not wait for an ACK.
    if (isTcp(socket)) socket.setNoDelay(true);
    const connection = new Connection(socket, this.#connectionDeps);
    this.#byAddress.add(connection.peer, connection);
    this.#open.set(connection, connection.run().then(() => this.#forget(connection)));
  }

  #forget(connection: Connection): void {
    this.#byAddress.delete(connection.peer, connection);
    this.#open.delete(connection);
  }

  /** Without handles to accept with there are none to open files with either. */
  #leaveHandles(): void {
    const fewer = Math.floor(this.#open.size * HANDLES_SHARE);
    this.#connectionsMax = Math.max(1, Math.min(this.#connectionsMax, fewer));
  }

  /** Why there is no room for one more connection of this address; `undefined` where there is. */
  #fullFor(peer: string): string | undefined {
    const ofAddress = this.#byAddress.of(peer);
    const perAddressMax = this.#deps.perAddressMax ??
      Math.ceil(this.#connectionsMax * ADDRESS_SHARE);
    if (ofAddress.size >= perAddressMax && !this.#makeRoom(ofAddress, perAddressMax)) {
      return "too many requests of one address";
    }
    const isFull = this.#open.size >= this.#connectionsMax;
    return isFull && !this.#makeRoom() ? "too many requests at once" : undefined;
  }

  /**
   * Closes connections whose client has long taken nothing, then those that owe nobody an answer;
   * of each the oldest first. False when there are none of either.
   */
  #makeRoom(among: Among = this.#open, max: number = this.#connectionsMax): boolean {
    const { stalledMs = STALLED_MS } = this.#deps;
    const waiting = [
      ...stalled(among.keys(), stalledMs / this.#sweepEveryMs),
      ...incomplete(among.keys()),
    ];
    const tooMany = Math.max(0, among.size - max);
    const count = tooMany + Math.ceil(max * MAKE_ROOM_SHARE);
    for (const connection of waiting.slice(0, count)) {
      this.#end(connection, "too many connections");
    }
    return waiting.length > 0;
  }

  #end(connection: Connection, reason: string): void {
    this.#closed.count(reason, "warn");
    this.#forget(connection);
    connection.close();
  }

  /** What waits for clients that take nothing is bounded, wherever it comes from. */
  #freeBytes(): void {
    const waiting = stalled(this.#open.keys(), SHED_TICKS);
    let bytes = waiting.reduce((sum, { unsentBytes }) => sum + unsentBytes, 0);
    for (const connection of waiting) {
      if (bytes <= (this.#deps.stalledBytesMax ?? STALLED_BYTES_MAX)) return;
      bytes -= connection.unsentBytes;
      this.#end(connection, "stalled clients hold much memory");
    }
  }

  #sweep(): void {
    this.#clock.count++;
    this.#clock.date = dateOf(this.#deps.nowMs());
    const limitsMs = this.#deps.limitsMs ?? PHASE_LIMITS_MS;
    for (const connection of this.#open.keys()) {
      const { phase, ticks } = connection.activity;
      if (phase === "answering" && ticks === 1) connection.watch();
      if (phase === "sending" && ticks === SHED_TICKS) connection.shed();
      const limitMs = limitsMs[phase];
      if (limitMs === undefined) continue;
      if (ticks * this.#sweepEveryMs <= limitMs) continue;
      if (!isNoNews(phase, connection)) this.#closed.count(OVERDUE_REASON[phase]);
      if (ASKED_TOO_SLOWLY.has(phase)) connection.turnAway(408, OVERDUE_REASON[phase]);
      else connection.close();
    }
    this.#freeBytes();
    this.#takeMore();
    this.#closed.flush();
  }

  /** A flood that took all handles is over some time. */
  #takeMore(): void {
    const { connectionsMax, moreAfterMs = MORE_AFTER_MS } = this.#deps;
    const nowMs = performance.now();
    if (this.#connectionsMax === connectionsMax || nowMs - this.#ranOutAtMs < moreAfterMs) return;
    this.#ranOutAtMs = nowMs - RAN_OUT_AGAIN_MS;
    this.#connectionsMax = Math.min(connectionsMax, Math.ceil(this.#connectionsMax * MORE_FACTOR));
  }

  async #over(): Promise<void> {
    // Those that end meanwhile take themselves out.
    await Promise.all(this.#open.values());
    clearInterval(this.#sweeping);
  }
}

function dateOf(nowMs: number): string {
  return new Date(nowMs).toUTCString();
}

/** A connection that was kept for a next request ends, or one whose refusal was logged. */
function isNoNews(phase: Phase, { hasAsked }: Connection): boolean {
  return phase === "lingering" || phase === "idle" && hasAsked;
}

function isTcp(socket: Socket): socket is Deno.TcpConn {
  return "setNoDelay" in socket;
}
