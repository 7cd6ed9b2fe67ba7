import assert from "node:assert/strict";
import { once } from "node:events";
import { Answer } from "../../src/http/message/message.ts";
import { TrustedProxies } from "../../src/http/proxy/trusted_proxies.ts";
import { HttpServer } from "../../src/http/server/http_server.ts";
import type { Socket } from "../../src/http/server/request_reader.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

/** Clients that come in one after the other, and which stay: two an address, eight in all. */
const CROWDS: Readonly<Record<string, readonly [clients: readonly string[], stay: string]>> = {
  "one address has a share, and its newest stay": [
    ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.1"],
    "01011",
  ],
  "an IPv6 network is one address": [
    ["2001:db8::1", "2001:db8::2", "2001:db8:0:0:7::", "2001:db8:0:1::1"],
    "0111",
  ],
  "IPv4 is one address on whatever listener": [
    ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"],
    "011",
  ],
  "a trusted proxy has no limit": [["10.9.0.1", "10.9.0.1", "10.9.0.1", "10.9.0.1"], "1111"],
  "a Unix socket has no limit": [["unix", "unix", "unix", "unix", "unix"], "11111"],
};

for (const [what, [clients, stay]] of Object.entries(CROWDS)) {
  Deno.test(`address limit: beyond two of one address the oldest close: ${what}`, async () => {
    const sockets = clients.map((client) => new SilentSocket(client));
    await using server = new HttpServer({
      handle: () => Promise.resolve(new Answer("", 200, {})),
      refuse: ({ status }) => new Answer("", status, {}),
      log: createLogger("error", { write() {} }),
      nowMs: Date.now,
      proxies: new TrustedProxies([{ address: "10.9.0.0", prefix: 16, family: "ipv4" }]),
    }, { connectionsMax: 8 });
    const coming = sockets[Symbol.iterator]();
    await server.serve({
      async accept() {
        const { value, done } = coming.next();
        if (done) throw new Deno.errors.BadResource("Listener has been closed");
        return value;
      },
    });
    assert.equal(sockets.map(({ isClosed }) => isClosed ? "0" : "1").join(""), stay);
  });
}

Deno.test("address limit: guesses of a token make room, before silent clients", async () => {
  const guess = new TextEncoder().encode("GET /pubkey HTTP/1.1\r\nHost: x\r\n\r\n");
  const address = "10.0.0.1";
  const sockets = [undefined, guess, undefined, undefined].map((said) =>
    new SilentSocket(address, said)
  );
  const isHeld = Promise.withResolvers<void>();
  await using server = new HttpServer({
    async handle(request) {
      request.heldBack?.();
      isHeld.resolve();
      await once(request.signal, "abort");
      return new Answer("", 401, {});
    },
    refuse: ({ status }) => new Answer("", status, {}),
    log: createLogger("error", { write() {} }),
    nowMs: Date.now,
  }, { connectionsMax: 12 });
  const coming = sockets.entries();
  await server.serve({
    async accept() {
      const { value: [at, socket] = [], done } = coming.next();
      if (at === 2) await isHeld.promise;
      if (done || socket === undefined) {
        throw new Deno.errors.BadResource("Listener has been closed");
      }
      return socket;
    },
  });
  assert.deepEqual(sockets.map(({ isClosed }) => isClosed), [false, true, false, false]);
});

/** A connection on which nothing comes, or one request. */
class SilentSocket implements Socket {
  readonly remoteAddr: Deno.Addr;
  readonly #closed = Promise.withResolvers<null>();
  isClosed = false;

  readonly #said: Uint8Array | undefined;
  #hasSaid = false;

  constructor(client: string, said?: Uint8Array) {
    this.#said = said;
    this.remoteAddr = client === "unix"
      ? { transport: "unix", path: "/socket" }
      : { transport: "tcp", hostname: client, port: 4711 };
  }

  read(into: Uint8Array): Promise<number | null> {
    if (this.#said === undefined || this.#hasSaid) return this.#closed.promise;
    this.#hasSaid = true;
    into.set(this.#said);
    return Promise.resolve(this.#said.length);
  }

  async write(bytes: Uint8Array): Promise<number> {
    return bytes.length;
  }

  async closeWrite(): Promise<void> {}

  close(): void {
    this.isClosed = true;
    this.#closed.resolve(null);
  }
}
