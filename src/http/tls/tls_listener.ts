import { Failure, messageOf, reasonOf } from "../../base/failure.ts";
import { answerInTime, readNamedFile } from "../../base/named_file.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import { ClosedLog, type HttpServer, type Incoming } from "../server/http_server.ts";
import { ReadySockets } from "../server/accepting.ts";
import type { Socket } from "../server/request_reader.ts";
import { type Link, linkOf } from "./link.ts";
import type { Place } from "./relay_messages.ts";
import { WorkerRelay, type WorkerRelayDeps } from "./worker_relay.ts";

/** The files of a certificate and its key. */
export interface TlsFiles extends PemPaths {
  /** Called with each certificate that comes into use, as PEM. */
  readonly certificateUsed?: (pem: string) => void;
}

export interface TlsListenerDeps {
  readonly place: Place;
  readonly files: TlsFiles;
  readonly server: Pick<HttpServer, "serve" | "handlesRanOut">;
  readonly log: Logger;
  readonly nowMs: () => number;
  /** Time between two checks of the files. Default: 5 seconds. */
  readonly checkEveryMs?: number;
  /** Time limit for reading the files. Default: 5 seconds. */
  readonly readMaxMs?: number;
  /** The relay in front. */
  readonly relay?: Pick<WorkerRelayDeps, "limits" | "proxyRanges">;
}

const CHECK_EVERY_MS = 5_000;

/** Time for clients in a replaced listener's queue. */
const HAND_OVER_MS = 200;

/**
 * Accepts HTTPS connections with the certificate in the files. A local listener speaks TLS behind a
 * relay, which can close connections that Deno cannot. If the files change, a new listener gets
 * new connections from the relay; open ones stay.
 */
export class TlsListener implements Disposable {
  readonly #deps: TlsListenerDeps;
  readonly #relay: WorkerRelay;
  readonly #closed: ClosedLog;
  readonly #checking: Timer;
  readonly #closing = new DisposableStack();
  #listener: RelayedListener;
  #used: Pems;
  readonly #pems: PemFiles;
  #isChecking = false;
  #isClosed = false;
  readonly #outage;
  /**
   * The pair at the last check. It uses only an unchanged pair: a changed one may be half written.
   */
  #seen: Pems | undefined;

  private constructor(deps: TlsListenerDeps, parts: ListenerParts) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "certificate-usable");
    this.#closed = parts.closed;
    this.#used = parts.pair;
    this.#pems = parts.pems;
    this.#relay = parts.relay;
    this.#listener = this.#serve(parts.listener);
    deps.files.certificateUsed?.(parts.pair.cert);
    this.#checking = clock.every(deps.checkEveryMs ?? CHECK_EVERY_MS, () => this.#tick());
  }

  /** Throws a Failure for unusable files, and Deno's error for the address. */
  static async open(deps: TlsListenerDeps): Promise<TlsListener> {
    const { place, files, server, log, nowMs, relay: relaySettings, checkEveryMs } = deps;
    const pems = new PemFiles(files, deps.readMaxMs);
    const pair = await pems.read();
    const listener = listenWith(pair, files);
    try {
      const closed = new ClosedLog(log, nowMs);
      const relay = await WorkerRelay.listen({
        place,
        inner: placeOf(listener),
        closed(reason) {
          if (reason === "cannot accept") server.handlesRanOut();
          else closed.count(reason);
        },
        ...relaySettings,
        sweepEveryMs: checkEveryMs,
      });
      return new TlsListener(deps, { pems, pair, listener, relay, closed });
    } catch (error) {
      listener.close();
      throw error;
    }
  }

  /** The address for clients. */
  get place(): Place {
    return this.#relay.place;
  }

  /** Stops accepting; resolves when all connections have ended. */
  async ended(): Promise<void> {
    this.#isClosed = true;
    this.#checking.cancel();
    await this.#relay.ended();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#checking.cancel();
    this.#relay[Symbol.dispose]();
    this.#closing.dispose();
    this.#listener[Symbol.dispose]();
  }

  #tick(): void {
    this.#closed.flush();
    this.#listener.closeUnmatched();
    void this.#replaceChanged();
  }

  /** Takes a pair of files that has changed. */
  async #replaceChanged(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { files, log } = this.#deps;
    try {
      const pair = await this.#pems.read();
      if (this.#isClosed) return;
      const isStill = isSame(pair, this.#seen);
      this.#seen = pair;
      if (!isStill) return;
      if (isSame(pair, this.#used)) return this.#outage.worked();
      this.#replace(pair);
      this.#used = pair;
      files.certificateUsed?.(pair.cert);
      this.#outage.worked();
      log.info("certificate replaced", { path: files.certPath });
    } catch (error) {
      // Missing files are missing at every check.
      this.#outage.failed(
        "certificate-not-replaced",
        { path: files.certPath, error: messageOf(error) },
        messageOf(error),
      );
    } finally {
      this.#isChecking = false;
    }
  }

  #serve(inner: Deno.TlsListener): RelayedListener {
    const listener = new RelayedListener(inner, this.#relay);
    void this.#deps.server.serve(listener);
    return listener;
  }

  #replace(pair: Pems): void {
    const listener = listenWith(pair, this.#deps.files);
    const before = this.#listener;
    this.#listener = this.#serve(listener);
    // From now on: the end of this listener may come before the relay has switched.
    const retired = this.#closing.use(new DisposableStack());
    retired.defer(() => before[Symbol.dispose]());
    void this.#relay.switchTo(placeOf(listener)).then(() => {
      if (retired.disposed) return;
      const timer = clock.after(HAND_OVER_MS, () => retired.dispose());
      retired.defer(() => timer.cancel());
    });
  }
}

interface ListenerParts {
  readonly pems: PemFiles;
  readonly pair: Pems;
  readonly listener: Deno.TlsListener;
  readonly relay: WorkerRelay;
  readonly closed: ClosedLog;
}

/** A listener on any port of the loopback address. */
function listenWith(pair: Pems, { certPath, keyPath }: TlsFiles): Deno.TlsListener {
  try {
    // The server speaks no HTTP/2.
    return Deno.listenTls({
      hostname: "127.0.0.1",
      port: 0,
      ...pair,
      alpnProtocols: ["http/1.1"],
    });
  } catch (error) {
    const files = `the certificate ${certPath} with the key ${keyPath}`;
    throw new Failure("broken", `Cannot use ${files}: ${messageOf(error)}`);
  }
}

function placeOf({ addr }: Deno.TlsListener): Place {
  const { hostname, port } = addr as Deno.NetAddr;
  return { hostname, port };
}

function isSame(one: Pems, other: Pems | undefined): boolean {
  return one.cert === other?.cert && one.key === other.key;
}

/** Paths of PEM files. */
interface PemPaths {
  readonly certPath: string;
  readonly keyPath: string;
}

interface Pems {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads a certificate and its key beside the thread that answers, within a time limit. A path may
 * hang: a FIFO, or a mount whose server is gone. Then one read hangs, and no other one begins.
 */
class PemFiles {
  readonly #paths: PemPaths;
  readonly #readMaxMs: number | undefined;
  #reading: Promise<Pems> | undefined;

  constructor(paths: PemPaths, readMaxMs?: number) {
    this.#paths = paths;
    this.#readMaxMs = readMaxMs;
  }

  /** Throws a Failure that names an unusable file, or both that do not answer. */
  async read(): Promise<Pems> {
    const reading = this.#reading ??= this.#begin();
    try {
      return await answerInTime(reading, this.#readMaxMs);
    } catch (error) {
      if (error instanceof Failure) throw error;
      const { certPath, keyPath } = this.#paths;
      throw new Failure("broken", `Cannot read ${certPath} and ${keyPath}: ${messageOf(error)}`);
    }
  }

  async #begin(): Promise<Pems> {
    const { certPath, keyPath } = this.#paths;
    try {
      return {
        cert: await readPem("--server-tls-cert", certPath, "a certificate"),
        key: await readPem("--server-tls-key", keyPath, "its private key"),
      };
    } finally {
      this.#reading = undefined;
    }
  }
}

async function readPem(option: string, path: string, content: string): Promise<string> {
  try {
    return await readNamedFile(path);
  } catch (error) {
    const expected = `expected a PEM file with ${content}`;
    throw new Failure("broken", `Cannot use ${option} ${path}: ${reasonOf(error)}; ${expected}`);
  }
}

type RelayOfLinks = Pick<
  WorkerRelay,
  "accepted" | "forget" | "secured" | "innerClosed" | "abort"
>;

/** The relay reports within milliseconds; a busy machine may take longer. */
const UNMATCHED_MS = 5_000;

/**
 * Accepts the relay's connections, each after the relay has named its client. It never accepts
 * connections of other programs on this machine.
 */
export class RelayedListener implements Incoming, Disposable {
  readonly #listener: Deno.TlsListener;
  readonly #relay: RelayOfLinks;
  readonly #sockets = new ReadySockets(() => this.#acceptOne());
  /** Accepted connections that the relay has not reported, with their times. */
  readonly #unmatched = new Map<Deno.TlsConn, number>();

  constructor(listener: Deno.TlsListener, relay: RelayOfLinks) {
    this.#listener = listener;
    this.#relay = relay;
  }

  accept(): Promise<Socket> {
    return this.#sockets.next();
  }

  /** Closes connections that the relay did not report in time. */
  closeUnmatched(nowMs = clock.nowMs()): void {
    for (const [inner, sinceMs] of this.#unmatched) {
      if (nowMs - sinceMs > UNMATCHED_MS) this.#refuse(inner);
    }
  }

  [Symbol.dispose](): void {
    for (const inner of this.#unmatched.keys()) this.#refuse(inner);
    this.#listener.close();
  }

  async #acceptOne(): Promise<void> {
    const inner = await this.#listener.accept();
    const link = linkOfEnds(inner);
    this.#unmatched.set(inner, clock.nowMs());
    this.#relay.accepted(link, (client) => {
      this.#unmatched.delete(inner);
      this.#sockets.add(new RelayedSocket(inner, link, { relay: this.#relay, client }));
    });
  }

  #refuse(inner: Deno.TlsConn): void {
    this.#unmatched.delete(inner);
    this.#relay.forget(linkOfEnds(inner));
    inner.close();
  }
}

function linkOfEnds({ localAddr, remoteAddr }: Deno.TlsConn): Link {
  return linkOf({
    relayPort: (remoteAddr as Deno.NetAddr).port,
    innerPort: (localAddr as Deno.NetAddr).port,
  });
}

interface RelayedFrom {
  readonly relay: RelayOfLinks;
  readonly client: Deno.NetAddr;
}

/** A connection of the relay, which learns of its handshake and its end. */
class RelayedSocket implements Socket {
  readonly remoteAddr: Deno.NetAddr;
  readonly #inner: Deno.TlsConn;
  readonly #link: Link;
  readonly #relay: RelayOfLinks;
  #isWriting = false;

  constructor(inner: Deno.TlsConn, link: Link, { relay, client }: RelayedFrom) {
    this.#inner = inner;
    this.#link = link;
    this.#relay = relay;
    this.remoteAddr = client;
    // A failed handshake fails the reads, too.
    inner.handshake().then(() => relay.secured(link), () => undefined);
  }

  read(bytes: Uint8Array): Promise<number | null> {
    return this.#inner.read(bytes);
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.#isWriting = true;
    const written = await this.#inner.write(bytes);
    this.#isWriting = false;
    return written;
  }

  closeWrite(): Promise<void> {
    return this.#inner.closeWrite();
  }

  close(): void {
    // A stalled client could keep the relay's sockets for ever.
    if (this.#isWriting) this.#relay.abort(this.#link);
    else this.#relay.innerClosed(this.#link);
    this.#inner.close();
  }
}
