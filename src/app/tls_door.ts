import { Failure, messageOf } from "../base/failure.ts";
import type { HttpServer } from "../http/server/http_server.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certPath: string;
  readonly keyPath: string;
}

export interface TlsDoorDeps {
  readonly hostname: string;
  readonly port: number;
  readonly files: TlsFiles;
  readonly server: Pick<HttpServer, "serve">;
  readonly log: Pick<Logger, "info" | "error">;
  /** How often the files are looked at. Default: 5 seconds. */
  readonly lookEveryMs?: number;
}

const LOOK_EVERY_MS = 5_000;

/**
 * So long two listeners share the address, and new connections. A listener that is closed at once
 * drops those that wait in its queue (measured: every second change lost one, of 300 a second).
 */
const HAND_OVER_MS = 200;

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Takes HTTPS connections with the certificate that the files hold. When they change, a second
 * listener on the same address takes over; connections that are open stay as they are.
 */
export class TlsDoor implements Disposable {
  readonly #deps: TlsDoorDeps;
  readonly #looking: number;
  #listener: Deno.TlsListener;
  /** In use, or tried in vain. */
  #known: Pair;
  /** What was logged last. */
  #complaint = "";
  /** Listeners that are taken out of service, by the timer that closes them. */
  readonly #closings = new Map<number, Deno.TlsListener>();
  /** Seen at the last look: a pair that is being written is not taken. */
  #seen: Pair | undefined;

  /** Throws a Failure where the files cannot be used, and what Deno throws for the address. */
  constructor(deps: TlsDoorDeps) {
    this.#deps = deps;
    this.#known = readPair(deps.files);
    checkIsFree(deps);
    this.#listener = listenWith(this.#known, deps);
    deps.server.serve(this.#listener);
    this.#looking = setInterval(() => this.#look(), deps.lookEveryMs ?? LOOK_EVERY_MS);
  }

  get addr(): Deno.NetAddr {
    return this.#listener.addr as Deno.NetAddr;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking);
    for (const [timer, listener] of this.#closings) {
      clearTimeout(timer);
      listener.close();
    }
    this.#closings.clear();
    this.#listener.close();
  }

  #look(): void {
    const { files, log } = this.#deps;
    try {
      const pair = readPair(files);
      const isStill = isSame(pair, this.#seen);
      this.#seen = pair;
      if (!isStill || isSame(pair, this.#known)) return;
      this.#known = pair;
      this.#replace(pair);
      this.#complaint = "";
      log.info("certificate replaced", { path: files.certPath });
    } catch (error) {
      // Files that are gone are so at every look.
      if (messageOf(error) === this.#complaint) return;
      this.#complaint = messageOf(error);
      log.error("certificate not replaced", { path: files.certPath, error: this.#complaint });
    }
  }

  #replace(pair: Pair): void {
    const listener = listenWith(pair, { ...this.#deps, port: this.addr.port });
    const before = this.#listener;
    this.#listener = listener;
    this.#deps.server.serve(listener);
    // What the system has taken for the one before still comes out of it.
    const timer = setTimeout(() => this.#closings.delete(timer) && before.close(), HAND_OVER_MS);
    this.#closings.set(timer, before);
  }
}

function readPair({ certPath, keyPath }: TlsFiles): Pair {
  return { cert: readFile(certPath), key: readFile(keyPath) };
}

function readFile(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    throw new Failure("broken", `Cannot read ${path}: ${messageOf(error)}`);
  }
}

function listenWith(pair: Pair, { hostname, port, files }: TlsDoorDeps): Deno.TlsListener {
  try {
    // For HTTP/2 this server knows no words.
    return Deno.listenTls({
      hostname,
      port,
      ...pair,
      alpnProtocols: ["http/1.1"],
      reusePort: true,
    });
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse || error instanceof Deno.errors.AddrNotAvailable) {
      throw error;
    }
    const { certPath, keyPath } = files;
    const what = `the certificate ${certPath} with the key ${keyPath}`;
    throw new Failure("broken", `Cannot use ${what}: ${messageOf(error)}`);
  }
}

/** Two programs may share a port that each of them is ready to share: that is not meant here. */
function checkIsFree({ hostname, port }: Pick<TlsDoorDeps, "hostname" | "port">): void {
  Deno.listen({ hostname, port }).close();
}

function isSame(one: Pair, other: Pair | undefined): boolean {
  return one.cert === other?.cert && one.key === other.key;
}
