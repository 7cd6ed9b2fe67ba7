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
  /** In use, or found to be of no use. */
  #known: Pair;
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
      log.info("certificate replaced", { path: files.certPath });
    } catch (error) {
      // Files that are gone say so with every other look no more often than once.
      const gone = { cert: messageOf(error), key: "" };
      if (isSame(gone, this.#known)) return;
      this.#known = gone;
      log.error("certificate not replaced", { path: files.certPath, error: messageOf(error) });
    }
  }

  #replace(pair: Pair): void {
    const { hostname } = this.#deps;
    const listener = listenWith(pair, { ...this.#deps, hostname, port: this.addr.port });
    const before = this.#listener;
    this.#listener = listener;
    this.#deps.server.serve(listener);
    before.close();
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
