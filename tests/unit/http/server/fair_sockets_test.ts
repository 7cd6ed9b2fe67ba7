import assert from "node:assert/strict";
import { FairSocket, FairTurns } from "../../../../src/http/server/http_server.ts";
import type { Socket } from "../../../../src/http/server/request_reader.ts";
import { lastTurnOver } from "../../../support/last_turn_over.ts";

const CROWD = 200;
const SMALL = new Uint8Array(1_000);
const LARGE = new Uint8Array(256 * 1024);

Deno.test("fair sockets: in a crowd large writes wait, small ones do not", async () => {
  await using crowd = new BusyCrowd();
  const [small, large] = [new TestSocket(), new TestSocket()];
  const writing = [crowd.inTurn(small).write(SMALL), crowd.inTurn(large).write(LARGE)];
  assert.deepEqual([small.writes, large.writes], [1, 0]);
  assert.deepEqual(await Promise.all(writing), [SMALL.length, LARGE.length]);
});

Deno.test("fair sockets: once a write lacks room, small ones wait, too", async () => {
  await using crowd = new BusyCrowd();
  const client = new TestSocket();
  const socket = crowd.inTurn(client);
  client.room = 400;
  assert.equal(await socket.write(SMALL), 400);
  client.room = Infinity;
  const writing = socket.write(SMALL);
  assert.equal(client.writes, 1);
  assert.equal(await writing, SMALL.length);
  const next = socket.write(SMALL);
  assert.equal(client.writes, 3, "the client reads again");
  await next;
});

Deno.test("fair sockets: few connections do not wait", async () => {
  const client = new TestSocket();
  const socket = new FairSocket(client, new FairTurns(() => 2));
  const writing = Array.from({ length: CROWD }, () => socket.write(LARGE));
  assert.equal(client.writes, CROWD);
  await Promise.all(writing);
});

/** Connections with more waiting reads than may begin in a turn. */
class BusyCrowd implements AsyncDisposable {
  readonly #turns = new FairTurns(() => CROWD);
  readonly #readers = Array.from({ length: CROWD }, () => new TestSocket());
  readonly #reading: Promise<unknown>;

  constructor() {
    this.#reading = Promise.all(this.#readers.map((one) => this.inTurn(one).read(SMALL)));
  }

  inTurn(socket: Socket): Socket {
    return new FairSocket(socket, this.#turns);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const reader of this.#readers) reader.close();
    await this.#reading;
    await lastTurnOver();
  }
}

/** Reads nothing until it is closed, and takes `room` bytes of each write. */
class TestSocket implements Socket {
  readonly remoteAddr: Deno.Addr = { transport: "tcp", hostname: "127.0.0.1", port: 1 };
  readonly #closed = Promise.withResolvers<null>();
  room = Infinity;
  writes = 0;

  read(): Promise<null> {
    return this.#closed.promise;
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.writes++;
    return Math.min(bytes.length, this.room);
  }

  async closeWrite(): Promise<void> {}

  close(): void {
    this.#closed.resolve(null);
  }
}
