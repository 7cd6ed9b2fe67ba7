import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Incoming } from "../server/http_server.ts";
import { ReadySockets, setNoDelay, SilentClients } from "../server/accepting.ts";
import type { Socket } from "../server/request_reader.ts";
import { type ProxiedClient, ProxiedClients, type ProxiedClientsDeps } from "./proxied_clients.ts";

/** A proxy sends its header at once. */
const HEADER_MS = 5_000;

/** Limit of connections without a header. */
const SILENT_MAX = 1_024;

const SWEEP_EVERY_MS = 1_000;

export interface ProxiedListenerDeps {
  readonly ranges: ProxiedClientsDeps["ranges"];
  readonly closed: ProxiedClientsDeps["closed"];
  readonly nowMs: () => number;
}

/** Accepts connections of proxies, each after its PROXY header. */
export class ProxiedListener implements Incoming, Disposable {
  readonly #listener: Incoming & { close(): void };
  readonly #silent: SilentClients;
  readonly #clients: ProxiedClients;
  readonly #sockets = new ReadySockets(() => this.#acceptOne());
  readonly #sweeping: Timer;

  constructor(listener: Incoming & { close(): void }, deps: ProxiedListenerDeps) {
    this.#listener = listener;
    this.#silent = new SilentClients(SILENT_MAX, deps.nowMs);
    this.#clients = new ProxiedClients({ ...deps, silent: this.#silent });
    this.#sweeping = clock.every(SWEEP_EVERY_MS, () => {
      const late = this.#silent.closeOverdue(HEADER_MS);
      for (let count = 0; count < late; count++) deps.closed("incomplete PROXY header");
    });
  }

  accept(): Promise<Socket> {
    return this.#sockets.next();
  }

  [Symbol.dispose](): void {
    this.#sweeping.cancel();
    this.#silent.closeAll();
    this.#listener.close();
  }

  async #acceptOne(): Promise<void> {
    const socket = await this.#listener.accept();
    void this.#clients.open(socket).then((client) => {
      if (client !== undefined) this.#sockets.add(new ProxiedSocket(socket, client));
    });
  }
}

/** A connection behind its PROXY header, under the client's address. */
class ProxiedSocket implements Socket {
  readonly remoteAddr: Deno.Addr;
  readonly #socket: Socket;
  #first: Uint8Array | undefined;

  constructor(socket: Socket, { address, bytes }: ProxiedClient) {
    this.#socket = socket;
    this.remoteAddr = address;
    this.#first = bytes.length > 0 ? bytes : undefined;
    setNoDelay(socket);
  }

  async read(into: Uint8Array): Promise<number | null> {
    if (this.#first === undefined) return await this.#socket.read(into);
    const taken = this.#first.subarray(0, into.length);
    into.set(taken);
    this.#first = taken.length < this.#first.length
      ? this.#first.subarray(taken.length)
      : undefined;
    return taken.length;
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#socket.write(bytes);
  }

  closeWrite(): Promise<void> {
    return this.#socket.closeWrite();
  }

  close(): void {
    this.#socket.close();
  }
}
