import { networkOf } from "../../base/network_of.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { peerAddress, UNIX_PEER } from "../message/message.ts";
import { acceptFailureOf, setNoDelay } from "./accepting.ts";
import { RunningWrites } from "./answer_writer.ts";
import {
  Connection,
  type ConnectionDeps,
  OVERDUE_REASON,
  type Phase,
  PHASE_LIMITS_MS,
  type PhaseLimits,
  type Proxies,
  type ServerStage,
} from "./connection.ts";
import type { Socket } from "./request_reader.ts";

export interface HttpServerDeps {
  readonly handle: ConnectionDeps["handle"];
  readonly refuse: ConnectionDeps["refuse"];
  readonly log: Logger;
  readonly nowMs: () => number;
  /** The proxies that clients may come through. They have no limit of connections. */
  readonly proxies?: Proxies | undefined;
}

export interface HttpServerLimits {
  /** Limit of open connections. A new one takes the place of one without a request. */
  readonly connectionsMax: number;
  /** Limit for one address; default: a quarter of all. */
  readonly perAddressMax?: number | undefined;
  /** Default: `PHASE_LIMITS_MS`. */
  readonly limitsMs?: PhaseLimits;
  /** Time between two sweeps over all connections. */
  readonly sweepEveryMs?: number;
  /** Default: `STALLED_MS`. */
  readonly stalledMs?: number;
  /** Default: `STALLED_BYTES_MAX`. */
  readonly stalledBytesMax?: number;
  /** Default: that of `RunningWrites`. */
  readonly largeWriteBytesMax?: number;
  /** Default: `RAISE_AFTER_MS`. */
  readonly raiseAfterMs?: number;
}

/** The source of connections. */
export interface Incoming {
  accept(): Promise<Socket>;
}

/** Some of the open connections, by `keys`. */
type Among = Pick<ReadonlyMap<Connection, unknown> | ReadonlySet<Connection>, "keys" | "size">;

const SWEEP_EVERY_MS = 1_000;

/** Share of connections that make room at once. A flood costs one sweep for each share. */
const MAKE_ROOM_SHARE = 1 / 64;

/** A client that reads nothing for so long makes room, if nobody else can. */
const STALLED_MS = 30_000;

const READING_PHASES: ReadonlySet<Phase> = new Set(["head", "body", "skipping"]);

/** Share of all connections for one address, by default. */
const ADDRESS_SHARE = 1 / 4;

/** Memory for unsent pieces of stalled clients. Beyond it, the longest stalled ones end. */
const STALLED_BYTES_MAX = 64 * 1024 * 1024;

/** Sweeps without a read after which a client is slow. */
const SHED_TICKS = 2;

/** The connections of one proxy stand for many clients. */
const NOBODY: ReadonlySet<Connection> = new Set();

/** Share of the connections that stay once they have taken all file handles. */
const HANDLES_SHARE = 0.75;

/** Two shortages within this time count as one: closing connections takes a moment. */
const RAN_OUT_AGAIN_MS = 2_000;

/** Time without a shortage after which the limit grows by `RAISE_FACTOR`. */
const RAISE_AFTER_MS = 10_000;
const RAISE_FACTOR = 1.5;

/** Time between two tries to accept without file handles. */
const ACCEPT_AGAIN_MS = 100;

/** An HTTP/1 server: serves connections, closes stalled ones, and limits their number. */
export class HttpServer {
  readonly #deps: HttpServerDeps & { readonly limits: HttpServerLimits };
  readonly #connectionOf: (socket: Socket) => Connection;
  readonly #open = new Map<Connection, Promise<void>>();
  readonly #byAddress = new ByAddress();
  readonly #closed: ClosedLog;
  readonly #clock: { count: number; date: string };
  readonly #sweeping: Timer;
  #connectionsMax: number;
  #stage: ServerStage = "serving";
  #ranOutAtMs = -Infinity;

  constructor(deps: HttpServerDeps, limits: HttpServerLimits) {
    this.#deps = { ...deps, limits };
    this.#connectionsMax = limits.connectionsMax;
    this.#closed = new ClosedLog(deps.log, deps.nowMs);
    this.#clock = { count: 0, date: dateOf(deps.nowMs()) };
    const connectionDeps: ConnectionDeps = {
      handle: deps.handle,
      refuse: deps.refuse,
      proxies: deps.proxies,
      refused: (reason) => this.#closed.count(reason),
      ticks: this.#clock,
      running: new RunningWrites(limits.largeWriteBytesMax),
      stage: () => this.#stage,
    };
    const turns = new FairTurns(() => this.#open.size);
    this.#connectionOf = (socket) => new Connection(new FairSocket(socket, turns), connectionDeps);
    this.#sweeping = clock.every(this.#sweepEveryMs, () => this.#sweep());
  }

  get #sweepEveryMs(): number {
    return this.#deps.limits.sweepEveryMs ?? SWEEP_EVERY_MS;
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** The present limit of open connections. */
  get openMax(): number {
    return this.#connectionsMax;
  }

  /** Accepts connections until the listener is closed. */
  async serve(incoming: Incoming): Promise<void> {
    for (;;) {
      try {
        this.#add(await incoming.accept());
      } catch (error) {
        const failure = acceptFailureOf(error);
        if (this.#stage === "stopping" || failure === "listener closed") return;
        if (failure === "client gone") continue;
        this.handlesRanOut();
        await clock.pause(ACCEPT_AGAIN_MS);
      }
    }
  }

  /** Counts a connection that was closed before the server had it, for the log. */
  closed(reason: string): void {
    this.#closed.count(reason);
  }

  /** Makes room: `accept` found no file handle, here or in the relay. */
  handlesRanOut(): void {
    this.#closed.count("cannot accept", "warn");
    const nowMs = clock.nowMs();
    if (nowMs - this.#ranOutAtMs < RAN_OUT_AGAIN_MS) return;
    this.#ranOutAtMs = nowMs;
    this.#lowerLimit();
    this.#makeRoom();
  }

  /** Serves on, but closes each connection after its next answer: clients find another server. */
  retire(): void {
    if (this.#stage === "serving") this.#stage = "retiring";
  }

  /** Finishes running requests; resolves when all connections are closed. */
  async shutdown(): Promise<void> {
    this.#stage = "stopping";
    for (const connection of incomplete(this.#open.keys())) connection.close("stopped");
    await this.#allClosed();
  }

  /** Closes every connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stage = "stopping";
    for (const connection of this.#open.keys()) connection.close("stopped");
    await this.#allClosed();
  }

  #add(socket: Socket): void {
    const full = this.#fullFor(peerAddress(socket.remoteAddr));
    if (full !== undefined) {
      this.#closed.count(full, "warn");
      return socket.close();
    }
    setNoDelay(socket);
    const connection = this.#connectionOf(socket);
    this.#byAddress.add(connection.peer, connection);
    this.#open.set(connection, connection.run().then(() => this.#forget(connection)));
  }

  #forget(connection: Connection): void {
    this.#byAddress.delete(connection.peer, connection);
    this.#open.delete(connection);
  }

  /** Lowers the limit: without handles to accept with, there are none to open files with either. */
  #lowerLimit(): void {
    const fewer = Math.floor(this.#open.size * HANDLES_SHARE);
    this.#connectionsMax = Math.max(1, Math.min(this.#connectionsMax, fewer));
  }

  /** The reason why there is no room for a connection of this address; else `undefined`. */
  #fullFor(peer: string): string | undefined {
    const isProxy = this.#deps.proxies?.trusts(peer) ?? false;
    const ofAddress = isProxy ? NOBODY : this.#byAddress.of(peer);
    const perAddressMax = this.#deps.limits.perAddressMax ??
      Math.ceil(this.#connectionsMax * ADDRESS_SHARE);
    if (ofAddress.size >= perAddressMax && !this.#makeRoom(ofAddress, perAddressMax)) {
      return "too many connections of one address";
    }
    const isFull = this.#open.size >= this.#connectionsMax;
    return isFull && !this.#makeRoom() ? "too many connections" : undefined;
  }

  /**
   * Closes connections with a wrong token, then stalled ones, then those without a whole request,
   * each the oldest first. False if there are none.
   */
  #makeRoom(among: Among = this.#open, max: number = this.#connectionsMax): boolean {
    const { stalledMs = STALLED_MS } = this.#deps.limits;
    const waiting = new Set([
      ...held(among.keys()),
      ...stalled(among.keys(), stalledMs / this.#sweepEveryMs),
      ...incomplete(among.keys()),
    ]);
    const tooMany = Math.max(0, among.size - max);
    const count = tooMany + Math.ceil(max * MAKE_ROOM_SHARE);
    for (const connection of [...waiting].slice(0, count)) {
      this.#end(connection, "making room");
    }
    return waiting.size > 0;
  }

  #end(connection: Connection, reason: string): void {
    this.#closed.count(reason, "warn");
    this.#forget(connection);
    connection.close("closed");
  }

  /** Bounds the memory of all answers that stalled clients keep. */
  #boundMemory(): void {
    const waiting = stalled(this.#open.keys(), SHED_TICKS);
    let bytes = waiting.reduce((sum, { unsentBytes }) => sum + unsentBytes, 0);
    for (const connection of waiting) {
      if (bytes <= (this.#deps.limits.stalledBytesMax ?? STALLED_BYTES_MAX)) return;
      bytes -= connection.unsentBytes;
      this.#end(connection, "memory of stalled clients");
    }
  }

  #sweep(): void {
    this.#clock.count++;
    this.#clock.date = dateOf(this.#deps.nowMs());
    const limitsMs = this.#deps.limits.limitsMs ?? PHASE_LIMITS_MS;
    for (const connection of this.#open.keys()) {
      const { phase, ticks } = connection.activity;
      if ((phase === "answering" || phase === "held") && ticks === 1) connection.watch();
      if (phase === "sending" && ticks === SHED_TICKS) connection.shed();
      const limitMs = limitsMs[phase];
      if (limitMs === undefined) continue;
      if (ticks * this.#sweepEveryMs <= limitMs) continue;
      if (!isExpectedEnd(phase, connection)) this.#closed.count(OVERDUE_REASON[phase]);
      if (READING_PHASES.has(phase)) connection.refuse(408, OVERDUE_REASON[phase]);
      else connection.close("closed");
    }
    this.#boundMemory();
    this.#raiseLimit();
    this.#closed.flush();
  }

  /** Raises the limit again after a flood. */
  #raiseLimit(): void {
    const { connectionsMax, raiseAfterMs = RAISE_AFTER_MS } = this.#deps.limits;
    const nowMs = clock.nowMs();
    if (this.#connectionsMax === connectionsMax || nowMs - this.#ranOutAtMs < raiseAfterMs) return;
    this.#ranOutAtMs = nowMs - RAN_OUT_AGAIN_MS;
    this.#connectionsMax = Math.min(connectionsMax, Math.ceil(this.#connectionsMax * RAISE_FACTOR));
  }

  async #allClosed(): Promise<void> {
    // Connections that end meanwhile leave the map themselves.
    await Promise.all(this.#open.values());
    this.#sweeping.cancel();
  }
}

function dateOf(nowMs: number): string {
  return new Date(nowMs).toUTCString();
}

/** True for an idle connection after its answers, and for a logged refusal. */
function isExpectedEnd(phase: Phase, { hasRequested }: Connection): boolean {
  return phase === "lingering" || phase === "idle" && hasRequested;
}

/** Phases in which the server owes no answer. These connections make room first, and end first. */
const INCOMPLETE: ReadonlySet<Phase> = new Set([
  ...["idle", "head", "body", "skipping", "held", "lingering"] as const,
]);

/** Connections that wait for the answer to a wrong token, the longest first. */
function held(connections: Iterable<Connection>): Connection[] {
  return oldestFirst(connections, ({ activity: { phase } }) => phase === "held");
}

/** Connections without a whole request, or with a wrong token; the oldest phase first. */
function incomplete(connections: Iterable<Connection>): Connection[] {
  return oldestFirst(connections, ({ activity: { phase } }) => INCOMPLETE.has(phase));
}

/** Connections whose client has read nothing for `ticks` sweeps, the longest first. */
function stalled(connections: Iterable<Connection>, ticks: number): Connection[] {
  return oldestFirst(
    connections,
    ({ activity }) => activity.phase === "sending" && activity.ticks >= ticks,
  );
}

function oldestFirst(
  connections: Iterable<Connection>,
  isMeant: (connection: Connection) => boolean,
): Connection[] {
  return [...connections].filter(isMeant).sort((a, b) => b.activity.ticks - a.activity.ticks);
}

/**
 * Groups connections by the address of their peer. IPv6 counts by its first 64 bits, as a client
 * usually owns all addresses below. Peers of a Unix socket have no group.
 */
class ByAddress {
  readonly #groups = new Map<string, Set<Connection>>();

  /** `peer`: an address as `peerAddress` returns it. */
  add(peer: string, connection: Connection): void {
    if (peer === UNIX_PEER) return;
    const key = networkOf(peer);
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, new Set([connection]));
    else group.add(connection);
  }

  delete(peer: string, connection: Connection): void {
    const key = networkOf(peer);
    const group = this.#groups.get(key);
    group?.delete(connection);
    if (group?.size === 0) this.#groups.delete(key);
  }

  /** The connections of this address and its network. */
  of(peer: string): ReadonlySet<Connection> {
    return this.#groups.get(networkOf(peer)) ?? NOBODY;
  }
}

/** Time between two lines for one reason. */
const SUMMARY_EVERY_MS = 60_000;

/** "info": the client's own fault; "warn": the server ran out of something. */
type ClosedLevel = "info" | "warn";

/** Logs closed connections by reason, without a line for each. */
export class ClosedLog {
  readonly #log: Pick<Logger, "event">;
  readonly #nowMs: () => number;
  readonly #seen = new Map<string, Seen>();

  constructor(log: Pick<Logger, "event">, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /**
   * Logs the first one at once, and those of the next minute in one line. `reason` is one of few.
   */
  count(reason: string, level: ClosedLevel = "info"): void {
    const seen = this.#seen.get(reason);
    if (seen !== undefined) return void seen.count++;
    this.#seen.set(reason, { level, loggedAtMs: this.#nowMs(), count: 0 });
    this.#log.event("connections-closed", { reason, count: 1 }, level);
  }

  /** Logs the counts that are a minute old. Call it regularly. */
  flush(): void {
    const nowMs = this.#nowMs();
    for (const [reason, seen] of this.#seen) {
      if (nowMs - seen.loggedAtMs < SUMMARY_EVERY_MS) continue;
      if (seen.count === 0) {
        this.#seen.delete(reason);
        continue;
      }
      this.#log.event("connections-closed", { reason, count: seen.count }, seen.level);
      this.#seen.set(reason, { ...seen, loggedAtMs: nowMs, count: 0 });
    }
  }
}

interface Seen {
  readonly level: ClosedLevel;
  readonly loggedAtMs: number;
  count: number;
}

/** A smaller write fits into the empty buffer of a socket. */
const LARGE_WRITE_BYTES = 64 * 1024;

/** The same connection. Where there are many, its reads and large writes take turns with theirs. */
export class FairSocket implements Socket {
  readonly #socket: Socket;
  readonly #turns: FairTurns;
  /** True if the last write found no room for all its bytes. */
  #isFull = false;

  constructor(socket: Socket, turns: FairTurns) {
    this.#socket = socket;
    this.#turns = turns;
  }

  get remoteAddr(): Deno.Addr {
    return this.#socket.remoteAddr;
  }

  read(bytes: Uint8Array): Promise<number | null> {
    if (!this.#turns.areCrowded) return this.#socket.read(bytes);
    return this.#turns.run(() => this.#socket.read(bytes));
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#turns.areCrowded ? this.#writeInCrowd(bytes) : this.#socket.write(bytes);
  }

  async #writeInCrowd(bytes: Uint8Array): Promise<number> {
    const mayWait = this.#isFull || bytes.length > LARGE_WRITE_BYTES;
    const begin = () => this.#socket.write(bytes);
    const written = await (mayWait ? this.#turns.run(begin) : begin());
    this.#isFull = written < bytes.length;
    return written;
  }

  closeWrite(): Promise<void> {
    return this.#socket.closeWrite();
  }

  close(): void {
    this.#socket.close();
  }
}

/** Connections up to this number never wait for each other. */
const CROWD_MIN = 64;

/** A quarter of Deno's 128: other work needs some, too. */
const BEGUN_MAX = 32;

/**
 * Gives each of many busy connections its turn. Deno serves 128 ready operations in a turn of its
 * event loop (the budget of a tokio task), those first that became ready last. Of more than 128
 * busy connections some were served again and again, and others waited for seconds (measured, 2.6.8
 * and 2.9.6). In a crowd at most 32 operations without a ready socket begin in a turn. Further ones
 * wait, in the order of arrival.
 */
export class FairTurns {
  readonly #countOpen: () => number;
  readonly #waiting: (() => void)[] = [];
  /** Operations that began in this turn, and found no ready socket. */
  #begun = 0;
  #turn = 0;
  /** True if an operation had to wait since the last turn. */
  #isBusy = false;
  #isTurnDue = false;

  /** `countOpen`: the number of connections that take turns. */
  constructor(countOpen: () => number) {
    this.#countOpen = countOpen;
  }

  /** True if `run` may let an operation wait. */
  get areCrowded(): boolean {
    return this.#countOpen() > CROWD_MIN;
  }

  /** Begins this read or write in its turn, and resolves with its result. */
  async run<T>(begin: () => Promise<T>): Promise<T> {
    await this.#ownTurn();
    const turn = this.#turn;
    try {
      return await begin();
    } finally {
      // Within the same turn: its socket was ready.
      if (turn === this.#turn && this.#begun > 0) this.#begun--;
    }
  }

  #ownTurn(): Promise<void> | undefined {
    if (!this.#isTurnDue) this.#goOn();
    if (!this.#isBusy && this.#begun < BEGUN_MAX) {
      this.#begun++;
      return undefined;
    }
    this.#isBusy = true;
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Begins more at once while sockets are ready, else in the next turn. */
  #goOn(): void {
    this.#isTurnDue = true;
    clock.soon(() => {
      if (this.#waiting.length > 0 && this.#begun < BEGUN_MAX) this.#release();
      // Set behind all other work: the event loop looks for ready sockets before it fires.
      else clock.after(0, () => this.#nextTurn());
    });
  }

  #nextTurn(): void {
    this.#turn++;
    this.#begun = 0;
    this.#isTurnDue = false;
    this.#isBusy = this.#waiting.length > 0;
    if (this.#isBusy) this.#release();
  }

  #release(): void {
    const released = this.#waiting.splice(0, BEGUN_MAX - this.#begun);
    this.#begun += released.length;
    this.#goOn();
    for (const begin of released) begin();
  }
}
