import assert from "node:assert/strict";
import type { Link } from "../../../../src/http/tls/link.ts";
import { Relay, RELAY_LIMITS, type RelayLimits } from "../../../../src/http/tls/relay.ts";
import { eventually } from "../../../support/eventually.ts";
import { writeAll } from "../../../support/steady_port.ts";

const PLACE = { hostname: "127.0.0.1", port: 0 };
const LARGE = new Uint8Array(50_000_000);
const HELLO = new TextEncoder().encode("hello");

Deno.test("relay: a client that leaves without a byte is not connected within", async () => {
  await using scene = new Scene();
  for (let count = 0; count < 50; count++) (await scene.connect()).close();
  using client = await scene.connect();
  await client.write(HELLO);
  assert.deepEqual(await scene.heard(), ["hello"]);
});

Deno.test("relay: of clients that send nothing the oldest goes for a newer one", async () => {
  await using scene = new Scene({ silentMax: 2 });
  using oldest = await scene.connect();
  using newer = await scene.connect();
  using newest = await scene.connect();
  assert.equal(await oldest.read(new Uint8Array(1)), null);
  for (const client of [newer, newest]) await client.write(HELLO);
  assert.deepEqual(await scene.heard(2), ["hello", "hello"]);
});

Deno.test("relay: a client that sends nothing has as long as for its handshake", async () => {
  await using scene = new Scene({ handshakeMs: 100 });
  using silent = await scene.connect();
  assert.equal(await silent.read(new Uint8Array(1)), null);
  await eventually("it is said", () => scene.closed.join() === "incomplete TLS handshake");
});

Deno.test("relay: a client that has sent nothing holds up no end", async () => {
  await using scene = new Scene();
  using silent = await scene.connect();
  await scene.end();
  assert.equal(await silent.read(new Uint8Array(1)), null);
});

Deno.test("relay: of clients that are given up, and take nothing, the oldest goes", async () => {
  await using scene = new Scene({ leavingMax: 2 });
  const clients = [];
  for (let count = 0; count < 3; count++) {
    const client = await scene.connect();
    clients.push(client);
    await client.write(HELLO);
    await scene.fill();
  }
  await eventually("all are connected", () => scene.links.length === 3);
  for (const link of scene.links) scene.giveUp(link);
  await eventually("the oldest is gone", () => scene.gone.length > 0);
  assert.deepEqual(scene.gone, scene.links.slice(0, 1));
  for (const client of clients) client.close();
});

/** A relay before a listener that speaks no TLS. */
class Scene implements AsyncDisposable {
  readonly closed: string[] = [];
  /** Of clients that were connected, in this order. */
  readonly links: Link[] = [];
  /** Those of them that are over. */
  readonly gone: Link[] = [];
  readonly #inner = Deno.listen(PLACE);
  readonly #outer = Deno.listen(PLACE);
  readonly #relay: Relay;
  readonly #serving: Promise<void>;
  readonly #filled = new DisposableStack();

  constructor(limits: Partial<RelayLimits> = {}) {
    const { port } = this.#inner.addr;
    this.#relay = new Relay({ ...PLACE, port }, {
      nowMs: () => performance.now(),
      closed: (reason) => void this.closed.push(reason),
      connected: (link) => {
        this.links.push(link);
        queueMicrotask(() => this.#relay.known(link));
      },
      disconnected: (link) => void this.gone.push(link),
      limits: { ...RELAY_LIMITS, ...limits },
      sweepEveryMs: 20,
    });
    this.#serving = this.#relay.serve(this.#outer);
  }

  connect(): Promise<Deno.TcpConn> {
    return Deno.connect({ ...PLACE, port: this.#outer.addr.port });
  }

  /** The first bytes of the first `count` connections to the listener within. */
  async heard(count = 1): Promise<readonly string[]> {
    const heard: string[] = [];
    while (heard.length < count) {
      using connection = await this.#inner.accept();
      const bytes = new Uint8Array(100);
      const length = await connection.read(bytes) ?? 0;
      heard.push(new TextDecoder().decode(bytes.subarray(0, length)));
    }
    return heard;
  }

  /** Accepts the next connection within, and sends more than its client has room for. */
  async fill(): Promise<void> {
    const connection = await this.#inner.accept();
    this.#filled.use(connection);
    void writeAll(connection, LARGE).catch(() => undefined);
  }

  /** As the server within does after an answer. */
  giveUp(link: Link): void {
    this.#relay.secured(link);
    this.#relay.innerClosed(link);
  }

  /** Takes no more connections. Resolves when all that it took have ended. */
  async end(): Promise<void> {
    this.#outer.close();
    await this.#serving;
    await this.#relay.ended();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#relay[Symbol.dispose]();
    try {
      this.#outer.close();
    } catch {
      // Closed by `end`.
    }
    this.#filled.dispose();
    this.#inner.close();
    await this.#relay.ended();
  }
}
