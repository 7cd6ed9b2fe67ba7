import { Failure, messageOf, reasonOf } from "../../base/failure.ts";
import type { RelayLimits } from "./relay.ts";
import { ClosedLog } from "../server/closed_log.ts";
import type { HttpServer } from "../server/http_server.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type OutageLine, OutageLog } from "../../telemetry/outage_log.ts";
import { RelayedListener } from "./relayed_listener.ts";
import type { Place } from "./relay_messages.ts";
import { WorkerRelay } from "./worker_relay.ts";

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certPath: string;
  readonly keyPath: string;
}

export interface TlsListenerDeps {
  readonly place: Place;
  readonly files: TlsFiles;
  readonly server: Pick<HttpServer, "serve" | "handlesRanOut">;
  readonly log: Logger;
  readonly nowMs: () => number;
  /** How often the files, and what to log, are looked at. Default: 5 seconds. */
  readonly lookEveryMs?: number;
  /** Of the relay in front. */
  readonly limits?: RelayLimits;
}

const LOOK_EVERY_MS = 5_000;

/** What clients of a listener that was replaced have sent is in its queue at most this long. */
const HAND_OVER_MS = 200;

const NOT_REPLACED: OutageLine = { level: "error", message: "certificate not replaced" };

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Takes HTTPS connections with the certificate that the files hold. TLS is spoken by a listener of
 * this machine, behind a relay that can end what that one cannot. When the files change, the relay
 * turns to another; connections that are open stay as they are.
 */
export class TlsListener implements Disposable {
  readonly #deps: TlsListenerDeps;
  readonly #relay: WorkerRelay;
  readonly #closed: ClosedLog;
  readonly #looking: ReturnType<typeof setInterval>;
  readonly #closing = new DisposableStack();
  #listener: RelayedListener;
  /** In use, or tried in vain. */
  #known: Pair;
  readonly #outage: OutageLog;
  /** Seen at the last look: a pair that is being written is not taken. */
  #seen: Pair | undefined;

  private constructor(deps: TlsListenerDeps, parts: ListenerParts) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log);
    this.#closed = parts.closed;
    this.#known = parts.pair;
    this.#relay = parts.relay;
    this.#listener = this.#serve(parts.listener);
    this.#looking = setInterval(() => this.#look(), deps.lookEveryMs ?? LOOK_EVERY_MS);
  }

  /** Throws a Failure where the files cannot be used, and what Deno throws for the address. */
  static async open(deps: TlsListenerDeps): Promise<TlsListener> {
    const { place, files, server, log, nowMs, limits, lookEveryMs } = deps;
    const pair = readPair(files);
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
        limits,
        sweepEveryMs: lookEveryMs,
      });
      return new TlsListener(deps, { pair, listener, relay, closed });
    } catch (error) {
      listener.close();
      throw error;
    }
  }

  /** Where clients come in. */
  get place(): Place {
    return this.#relay.place;
  }

  /** Takes nothing more; resolves when what was taken has ended. */
  async over(): Promise<void> {
    clearInterval(this.#looking);
    await this.#relay.over();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking);
    this.#relay[Symbol.dispose]();
    this.#closing.dispose();
    this.#listener[Symbol.dispose]();
  }

  #look(): void {
    this.#closed.flush();
    this.#listener.look();
    const { files, log } = this.#deps;
    try {
      const pair = readPair(files);
      const isStill = isSame(pair, this.#seen);
      this.#seen = pair;
      if (!isStill || isSame(pair, this.#known)) return;
      this.#known = pair;
      this.#replace(pair);
      this.#outage.worked();
      log.info("certificate replaced", { path: files.certPath });
    } catch (error) {
      // Files that are gone are so at every look.
      this.#outage.failed(
        NOT_REPLACED,
        { path: files.certPath, error: messageOf(error) },
        messageOf(error),
      );
    }
  }

  #serve(inner: Deno.TlsListener): RelayedListener {
    const listener = new RelayedListener(inner, this.#relay);
    void this.#deps.server.serve(listener);
    return listener;
  }

  #replace(pair: Pair): void {
    const listener = listenWith(pair, this.#deps.files);
    const before = this.#listener;
    this.#listener = this.#serve(listener);
    void this.#relay.turnTo(placeOf(listener)).then(() => {
      const retired = this.#closing.use(new DisposableStack());
      retired.defer(() => before[Symbol.dispose]());
      const timer = setTimeout(() => retired.dispose(), HAND_OVER_MS);
      retired.defer(() => clearTimeout(timer));
    });
  }
}

interface ListenerParts {
  readonly pair: Pair;
  readonly listener: Deno.TlsListener;
  readonly relay: WorkerRelay;
  readonly closed: ClosedLog;
}

function readPair({ certPath, keyPath }: TlsFiles): Pair {
  return { cert: readFile(certPath), key: readFile(keyPath) };
}

function readFile(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    throw new Failure("broken", `Cannot read ${path}: ${reasonOf(error)}`);
  }
}

/** On any port that only this machine reaches. */
function listenWith(pair: Pair, { certPath, keyPath }: TlsFiles): Deno.TlsListener {
  try {
    // For HTTP/2 this server knows no words.
    return Deno.listenTls({
      hostname: "127.0.0.1",
      port: 0,
      ...pair,
      alpnProtocols: ["http/1.1"],
    });
  } catch (error) {
    const what = `the certificate ${certPath} with the key ${keyPath}`;
    throw new Failure("broken", `Cannot use ${what}: ${messageOf(error)}`);
  }
}

function placeOf({ addr }: Deno.TlsListener): Place {
  const { hostname, port } = addr as Deno.NetAddr;
  return { hostname, port };
}

function isSame(one: Pair, other: Pair | undefined): boolean {
  return one.cert === other?.cert && one.key === other.key;
}
