import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { startLarder } from "../support/larder_process.ts";
import { testSocket } from "../support/test_socket.ts";

const LIMIT_MS = 20_000;

const NO_UPSTREAM = { "cache-upstream-url": [] };

Deno.test("service manager: it hears when larder answers, and when it stops", async () => {
  using place = testSocket();
  using manager = listening(place.path);
  await using larder = await startLarder(NO_UPSTREAM, { NOTIFY_SOCKET: place.path });

  const ready = await manager.next();
  const response = await fetch(`${larder.url}/readyz`);
  await response.body?.cancel();
  larder.kill("SIGTERM");
  const stopping = await manager.next();
  const { code } = await larder.ended;

  assert.equal(ready, `READY=1\nSTATUS=serving on ${larder.url}`);
  assert.equal(response.status, 200);
  assert.equal(stopping, "STOPPING=1\nEXTEND_TIMEOUT_USEC=50000000\nSTATUS=stopping");
  assert.equal(code, 0);
  // The sending socket has left no name behind.
  const hidden = [...Deno.readDirSync(larder.storage)].filter(({ name }) => name.startsWith("."));
  assert.deepEqual(hidden, []);
});

Deno.test("service manager: its watchdog hears of larder, not of another process", async () => {
  using place = testSocket();
  using manager = listening(place.path);
  const watchdog = { NOTIFY_SOCKET: place.path, WATCHDOG_USEC: "20000" };
  {
    await using _larder = await startLarder(NO_UPSTREAM, watchdog);
    await manager.next();
    assert.deepEqual([await manager.next(), await manager.next()], ["WATCHDOG=1", "WATCHDOG=1"]);
  }
  await manager.drained();
  await using other = await startLarder(NO_UPSTREAM, { ...watchdog, WATCHDOG_PID: "1" });
  assert.match(await manager.next(), /^READY=1/);
  other.kill("SIGTERM");
  assert.match(await manager.next(), /^STOPPING=1/);
});

Deno.test("service manager: without one that listens larder serves, and warns", async () => {
  await using larder = await startLarder(NO_UPSTREAM, { NOTIFY_SOCKET: "/nowhere/socket" });

  const { hint } = await larder.logged("service manager not notified");

  assert.match(String(hint), /Type=exec/);
});

Deno.test("service manager: many failed notifications are one warning", async () => {
  const variables = { NOTIFY_SOCKET: "/nowhere/socket", WATCHDOG_USEC: "20000" };
  await using larder = await startLarder({ ...NO_UPSTREAM, "log-level": "debug" }, variables);
  const message = "service manager not notified";

  await larder.logged(message, ({ level }) => level === "debug");

  const warnings = larder.lines.filter(({ msg, level }) => msg === message && level === "warn");
  assert.equal(warnings.length, 1);
});

/** A service manager's socket. */
function listening(path: string): Disposable & {
  next(): Promise<string>;
  /** Takes the messages that have come. */
  drained(): Promise<void>;
} {
  const socket = Deno.listenDatagram({ transport: "unixpacket", path });
  const next = async () => {
    const received = await clock.within(socket.receive(), LIMIT_MS);
    if (received === undefined) throw new Error(`Cannot hear of larder: ${LIMIT_MS} ms over`);
    return new TextDecoder().decode(received[0]);
  };
  return {
    next,
    async drained() {
      const mark = crypto.randomUUID();
      await socket.send(new TextEncoder().encode(mark), { transport: "unixpacket", path });
      while (await next() !== mark);
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
