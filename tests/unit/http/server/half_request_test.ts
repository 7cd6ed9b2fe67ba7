import assert from "node:assert/strict";
import { Answer } from "../../../../src/http/message/answer.ts";
import { HttpServer } from "../../../../src/http/server/http_server.ts";
import { Failure } from "../../../../src/base/failure.ts";
import type { ClientRequest } from "../../../../src/http/message/client_request.ts";
import type { Socket } from "../../../../src/http/server/request_reader.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";

const LIMIT_MS = 20_000;
/** The next sweep sees that the time is over. */
const SWEEP_WITHIN_MS = 1_000;
const HALVES = { "a head": "GET / HTTP/1.1\r\nHo", "a first line": "GET" };

for (const [name, half] of Object.entries(HALVES)) {
  Deno.test(`half a request: ${name} without an end is 408 after 20 seconds`, async () => {
    using sweeps = new PlayedSweeps();
    const socket = new HalfSocket(half);
    const incoming = Promise.withResolvers<never>();
    await using server = new HttpServer({
      handle: () => assert.fail("no request has come"),
      refuse: ({ status }) => new Answer("", status, {}),
      log: createLogger("error", { write() {} }),
      nowMs: Date.now,
    }, { connectionsMax: 10 });
    let isTaken = false;
    const running = server.serve({
      accept: async () => {
        if (isTaken) return await incoming.promise;
        isTaken = true;
        return socket;
      },
    });
    await socket.waiting;

    sweeps.advance(LIMIT_MS);
    await settled();
    assert.deepEqual([socket.said, server.openCount], ["", 1], "it has its time");
    sweeps.advance(SWEEP_WITHIN_MS);
    await settled();
    assert.match(socket.said, /^HTTP\/1\.1 408 /);

    socket.leave();
    incoming.reject(new Deno.errors.BadResource("Listener has been closed"));
    await running;
  });
}

const HALF_BODIES = {
  "a body": "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
  "a chunk": "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
  "a chunk's head": "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
};

for (const [name, half] of Object.entries(HALF_BODIES)) {
  Deno.test(`half a request: the app gives up ${name}, and its client gets 408`, async () => {
    const socket = new HalfSocket(half);
    const incoming = Promise.withResolvers<never>();
    const given = Promise.withResolvers<ClientRequest>();
    const failed = Promise.withResolvers<unknown>();
    await using server = new HttpServer({
      async handle(request) {
        given.resolve(request);
        await request.body?.pipeTo(new WritableStream()).catch(failed.resolve);
        return new Answer("", 200, {});
      },
      refuse: ({ status }) => new Answer("", status, {}),
      log: createLogger("error", { write() {} }),
      nowMs: Date.now,
    }, { connectionsMax: 10 });
    let isTaken = false;
    const running = server.serve({
      accept: async () => {
        if (isTaken) return await incoming.promise;
        isTaken = true;
        return socket;
      },
    });
    const request = await given.promise;
    await socket.waiting;
    request.giveUpBody?.();
    // At once, though the client sends nothing: others wait for the memory.
    assert.ok(await failed.promise instanceof Failure);
    assert.equal(socket.isClosed, false);
    await settled();
    assert.match(socket.said, /^HTTP\/1\.1 408 /);

    socket.leave();
    incoming.reject(new Deno.errors.BadResource("Listener has been closed"));
    await running;
  });
}

/** The sweeps of a server that is made in this scope. They come when the test says so. */
class PlayedSweeps implements Disposable {
  readonly #real = { setInterval, clearInterval };
  #sweep = () => assert.fail("nothing sweeps");
  #everyMs = NaN;

  constructor() {
    globalThis.setInterval = ((run: () => never, everyMs: number) => {
      this.#sweep = run;
      this.#everyMs = everyMs;
      return 1;
    }) as unknown as typeof setInterval;
    globalThis.clearInterval = () => {};
  }

  advance(ms: number): void {
    for (let atMs = this.#everyMs; atMs <= ms; atMs += this.#everyMs) this.#sweep();
  }

  [Symbol.dispose](): void {
    Object.assign(globalThis, this.#real);
  }
}

/** A client that sends some bytes, and then neither sends nor leaves. */
class HalfSocket implements Socket {
  readonly remoteAddr = { transport: "unix", path: "/socket" } as const;
  readonly #left = Promise.withResolvers<null>();
  readonly #waiting = Promise.withResolvers<void>();
  #half: string | undefined;
  said = "";
  isClosed = false;

  constructor(half: string) {
    this.#half = half;
  }

  /** Resolves when the server has read the bytes and waits for more. */
  get waiting(): Promise<void> {
    return this.#waiting.promise;
  }

  async read(into: Uint8Array): Promise<number | null> {
    if (this.#half === undefined) {
      this.#waiting.resolve();
      return await this.#left.promise;
    }
    const { written } = new TextEncoder().encodeInto(this.#half, into);
    this.#half = undefined;
    return written;
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.said += new TextDecoder().decode(bytes);
    return bytes.length;
  }

  async closeWrite(): Promise<void> {}

  close(): void {
    this.isClosed = true;
    this.leave();
  }

  leave(): void {
    this.#left.resolve(null);
  }
}

/** Promises that can go on have done so. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setTimeout(resolve));
}
