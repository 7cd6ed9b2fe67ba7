import type { ProxyRange } from "../proxy/trusted_proxies.ts";
import type { Link } from "./link.ts";
import type { RelayClosed, RelayLimits } from "./relay.ts";
import type { FromRelayWorker, Place, ToRelayWorker } from "./relay_messages.ts";

export interface WorkerRelayDeps {
  /** The address for clients; port 0 is any. */
  readonly place: Place;
  /** The inner listener's address. */
  readonly inner: Place;
  readonly closed: (reason: RelayClosed) => void;
  /** Default: `RELAY_LIMITS`. */
  readonly limits?: RelayLimits | undefined;
  /** Set if each connection begins with a PROXY header: the proxies that may connect. */
  readonly proxyRanges?: readonly ProxyRange[] | undefined;
  readonly sweepEveryMs?: number | undefined;
}

/** A relay in a Worker, which keeps its traffic off the main thread. */
export class WorkerRelay implements Disposable {
  /** The address for clients. */
  readonly place: Place;
  readonly #worker: Worker;
  readonly #clients = new LinkClients<Deno.NetAddr>((link) =>
    send(this.#worker, { type: "known", link })
  );
  readonly #ended = Promise.withResolvers<void>();
  #turned = Promise.withResolvers<void>();

  private constructor(worker: Worker, place: Place, closed: WorkerRelayDeps["closed"]) {
    this.#worker = worker;
    this.place = place;
    worker.onmessage = ({ data }: MessageEvent<FromRelayWorker>) => {
      this.#onMessage(data, closed);
    };
  }

  /** Throws Deno's error for the address. */
  static async listen(deps: WorkerRelayDeps): Promise<WorkerRelay> {
    const { place, inner, limits, proxyRanges, sweepEveryMs } = deps;
    const worker = new Worker(new URL("./relay_worker.ts", import.meta.url), { type: "module" });
    const { promise, resolve } = Promise.withResolvers<FromRelayWorker>();
    worker.onmessage = ({ data }: MessageEvent<FromRelayWorker>) => resolve(data);
    send(worker, { type: "listen", place, inner, limits, proxyRanges, sweepEveryMs });
    const answer = await promise;
    if (answer.type === "listening") return new WorkerRelay(worker, answer.place, deps.closed);
    worker.terminate();
    if (answer.type === "failed") throw listenError(answer.name, answer.message);
    throw new Error(`Cannot listen: the relay says "${answer.type}"`);
  }

  /** Resolves when every new client goes to `inner`, and none is connecting to the one before. */
  async switchTo(inner: Place): Promise<void> {
    this.#turned = Promise.withResolvers();
    send(this.#worker, { type: "switch", inner });
    await this.#turned.promise;
  }

  /** The listener accepted a connection. Calls `known` with its client if it is the relay's. */
  accepted(link: Link, known: (client: Deno.NetAddr) => void): void {
    this.#clients.accepted(link, known);
  }

  /** Forgets an accepted connection that is not the relay's. */
  forget(link: Link): void {
    this.#clients.forget(link);
  }

  /** The handshake of this connection is done. */
  secured(link: Link): void {
    send(this.#worker, { type: "secured", link });
  }

  /** Aborts this connection in the middle of an answer. */
  abort(link: Link): void {
    send(this.#worker, { type: "abort", link });
  }

  /** The inner end of this connection is closed. */
  innerClosed(link: Link): void {
    send(this.#worker, { type: "innerClosed", link });
  }

  /** Accepts no new client; resolves when all clients have left. */
  async ended(): Promise<void> {
    send(this.#worker, { type: "stop" });
    await this.#ended.promise;
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
  }

  #onMessage(message: FromRelayWorker, closed: WorkerRelayDeps["closed"]): void {
    switch (message.type) {
      case "connected":
        return this.#clients.connected(message.link, message.client);
      case "disconnected":
        return this.#clients.forget(message.link);
      case "closed":
        return closed(message.reason);
      case "switched":
        return this.#turned.resolve();
      case "over":
        return this.#ended.resolve();
    }
  }
}

function send(worker: Worker, message: ToRelayWorker): void {
  worker.postMessage(message);
}

/** Rebuilds an error's class, which messages from a Worker lose. */
function listenError(name: string, message: string): Error {
  const { AddrInUse, AddrNotAvailable } = Deno.errors;
  const known = [AddrInUse, AddrNotAvailable].find((one) => one.name === name);
  return new (known ?? Error)(message);
}

/**
 * Matches the connections that a listener accepts with the clients that the relay reports. Until
 * the match the relay forwards nothing and keeps its end open. So no other program can reuse its
 * port and get another client's connection.
 */
export class LinkClients<Client> {
  readonly #matched: (link: Link) => void;
  readonly #connected = new Map<Link, Client>();
  readonly #accepted = new Map<Link, (client: Client) => void>();

  constructor(matched: (link: Link) => void) {
    this.#matched = matched;
  }

  /** The relay has connected for this client. */
  connected(link: Link, client: Client): void {
    const accepted = this.#accepted.get(link);
    if (accepted === undefined) return void this.#connected.set(link, client);
    this.#accepted.delete(link);
    accepted(client);
    this.#matched(link);
  }

  /** The listener has accepted; `known` is called with the client, at once, later or never. */
  accepted(link: Link, known: (client: Client) => void): void {
    const client = this.#connected.get(link);
    if (client === undefined) return void this.#accepted.set(link, known);
    this.#connected.delete(link);
    known(client);
    this.#matched(link);
  }

  /** One end of the link is closed. */
  forget(link: Link): void {
    this.#connected.delete(link);
    this.#accepted.delete(link);
  }
}
