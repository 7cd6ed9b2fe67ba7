import { Answer } from "../../src/http/message/message.ts";
import {
  HttpServer,
  type HttpServerDeps,
  type HttpServerLimits,
} from "../../src/http/server/http_server.ts";
import type { Socket } from "../../src/http/server/request_reader.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { eventually } from "./eventually.ts";

const ENCODER = new TextEncoder();

/** Clients that ask for something and stop reading. */
export class StalledClients implements AsyncDisposable {
  readonly server: HttpServer;
  readonly sockets: StalledSocket[] = [];
  readonly #running: Promise<void>;
  readonly #coming: StalledSocket[] = [];
  #incoming = Promise.withResolvers<void>();

  constructor(handle: HttpServerDeps["handle"], limits: Partial<HttpServerLimits> = {}) {
    this.server = new HttpServer({
      handle,
      refuse: ({ status }) => new Answer("", status, {}),
      log: createLogger("error", { write() {} }),
      nowMs: Date.now,
    }, { connectionsMax: 1_000, ...limits });
    this.#running = this.server.serve({ accept: () => this.#next() });
  }

  get pendingBytes(): number {
    return this.sockets.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);
  }

  add(socket: StalledSocket): void {
    this.sockets.push(socket);
    this.#coming.push(socket);
    this.#incoming.resolve();
  }

  async allWait(): Promise<void> {
    await eventually("all wait", () => this.sockets.every(({ pendingBytes }) => pendingBytes > 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.leave();
    await this.server[Symbol.asyncDispose]();
    this.#incoming.reject(new Deno.errors.BadResource("Listener has been closed"));
    await this.#running;
  }

  async #next(): Promise<StalledSocket> {
    for (;;) {
      const socket = this.#coming.shift();
      if (socket !== undefined) return socket;
      await this.#incoming.promise;
      this.#incoming = Promise.withResolvers();
    }
  }
}

/** Shorter writes leave at once: heads. */
const HEAD_BYTES_MAX = 1_024;

/** A client that takes so much of a body. As on Deno 2.6, closing does not end its writes. */
export class StalledSocket implements Socket {
  readonly remoteAddr = { transport: "unix", path: "/socket" } as const;
  readonly #request: string;
  readonly #left = Promise.withResolvers<never>();
  #takenBytes: number;
  #hasAsked = false;
  /** Memory of the write that waits. */
  pendingBytes = 0;
  largestBytes = 0;

  constructor(takenBytes: number, path = "/") {
    this.#takenBytes = takenBytes;
    this.#request = `GET ${path} HTTP/1.1\r\nHost: larder\r\n\r\n`;
    this.#left.promise.catch(() => undefined);
  }

  async read(into: Uint8Array): Promise<number | null> {
    if (this.#hasAsked) return await this.#left.promise;
    this.#hasAsked = true;
    return ENCODER.encodeInto(this.#request, into).written;
  }

  async write(bytes: Uint8Array): Promise<number> {
    if (bytes.length < HEAD_BYTES_MAX) return bytes.length;
    this.largestBytes = Math.max(this.largestBytes, bytes.length);
    if (this.#takenBytes > 0) {
      const taken = Math.min(this.#takenBytes, bytes.length);
      this.#takenBytes -= taken;
      return taken;
    }
    this.pendingBytes = bytes.buffer.byteLength;
    return await this.#left.promise;
  }

  async closeWrite(): Promise<void> {}

  close(): void {}

  leave(): void {
    this.#left.reject(new Deno.errors.BrokenPipe());
  }
}
