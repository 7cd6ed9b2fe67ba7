import assert from "node:assert/strict";
import { Answer } from "../../../../src/http/message/answer.ts";
import { HttpServer, type HttpServerLimits } from "../../../../src/http/server/http_server.ts";
import type { Socket } from "../../../../src/http/server/request_reader.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { eventually } from "../../../support/eventually.ts";

const KIB = 1024;

/** What the runtime may hold for a client that does not read. */
const SMALL_BYTES = 16 * KIB;

const CLIENTS = 40;

Deno.test("stalled memory: the runtime holds little for a client that stops reading", async () => {
  await using scene = new Scene(400 * KIB, 8 * KIB);
  await scene.allWait();
  for (const socket of scene.sockets) assert.ok(socket.pendingBytes <= SMALL_BYTES);
});

for (const bodyBytes of [2 * KIB, 400 * KIB]) {
  Deno.test(`stalled memory: so it is where ${bodyBytes} bytes cannot begin to leave`, async () => {
    const largeWriteBytesMax = 256 * KIB;
    await using scene = new Scene(bodyBytes, 0, { largeWriteBytesMax });
    await scene.allWait();
    const bound = largeWriteBytesMax + 400 * KIB + CLIENTS * SMALL_BYTES;
    assert.ok(scene.pendingBytes <= bound, `${scene.pendingBytes} bytes`);
  });
}

Deno.test("stalled memory: a large write is possible again once the others have left", async () => {
  await using scene = new Scene(400 * KIB, 0, { largeWriteBytesMax: 1 });
  await scene.allWait();
  for (const socket of scene.sockets) socket.leave();
  const late = new StalledSocket(8 * KIB);
  scene.accept(late);
  await eventually("it waits", () => late.pendingBytes > 0);
  assert.ok(late.largestBytes >= 400 * KIB);
});

Deno.test("stalled memory: larder counts what waits, and closing lets go of it", async () => {
  await using scene = new Scene(400 * KIB, 8 * KIB, {
    sweepEveryMs: 10,
    stalledBytesMax: 2_000 * KIB,
  });
  await scene.allWait();
  await eventually("some are closed", () => scene.server.openCount <= 4);
  // It waits for the answers. Writes of a closed connection may never end.
  await scene.server[Symbol.asyncDispose]();
  assert.ok(scene.sockets.every(({ pendingBytes }) => pendingBytes > 0));
});

/** Clients that ask for a body of one size and stop reading. */
class Scene implements AsyncDisposable {
  readonly server: HttpServer;
  readonly sockets: StalledSocket[];
  readonly #running: Promise<void>;
  #incoming = Promise.withResolvers<Socket>();

  /** `takenBytes`: of each body. */
  constructor(
    bodyBytes: number,
    takenBytes: number,
    limits: Partial<HttpServerLimits> = {},
  ) {
    this.server = new HttpServer({
      handle: () => Promise.resolve(new Answer(new Uint8Array(bodyBytes), 200, {})),
      refuse: ({ status }) => new Answer("", status, {}),
      log: createLogger("error", { write() {} }),
      nowMs: Date.now,
    }, { connectionsMax: 1_000, ...limits });
    this.sockets = Array.from({ length: CLIENTS }, () => new StalledSocket(takenBytes));
    const coming = [...this.sockets][Symbol.iterator]();
    this.#running = this.server.serve({
      accept: async () => coming.next().value ?? await this.#incoming.promise,
    });
  }

  get pendingBytes(): number {
    return this.sockets.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);
  }

  accept(socket: StalledSocket): void {
    this.sockets.push(socket);
    const { resolve } = this.#incoming;
    this.#incoming = Promise.withResolvers();
    resolve(socket);
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
}

const REQUEST = new TextEncoder().encode("GET / HTTP/1.1\r\nHost: larder\r\n\r\n");

/** Shorter writes leave at once: heads. */
const HEAD_BYTES_MAX = KIB;

/** A client that takes so much of a body. As on Deno 2.6, closing does not end its writes. */
class StalledSocket implements Socket {
  readonly remoteAddr = { transport: "unix", path: "/socket" } as const;
  readonly #left = Promise.withResolvers<never>();
  #takenBytes: number;
  #hasAsked = false;
  /** Memory of the write that waits. */
  pendingBytes = 0;
  largestBytes = 0;

  constructor(takenBytes: number) {
    this.#takenBytes = takenBytes;
    this.#left.promise.catch(() => undefined);
  }

  async read(into: Uint8Array): Promise<number | null> {
    if (this.#hasAsked) return await this.#left.promise;
    this.#hasAsked = true;
    into.set(REQUEST);
    return REQUEST.length;
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
