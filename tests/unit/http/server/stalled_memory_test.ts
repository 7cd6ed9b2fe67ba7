import assert from "node:assert/strict";
import { DirectStream } from "../../../../src/base/direct_stream.ts";
import { StreamSource } from "../../../../src/cache/download/growing_file.ts";
import { Answer } from "../../../../src/http/message/message.ts";
import type { HttpServerLimits } from "../../../../src/http/server/http_server.ts";
import { eventually } from "../../../support/eventually.ts";
import { StalledClients, StalledSocket } from "../../../support/stalled_clients.ts";

const KIB = 1024;

/** The most that the runtime may hold for a client that does not read. */
const SMALL_BYTES = 16 * KIB;

const CLIENTS = 40;

Deno.test("stalled memory: the runtime holds little for a client that stops reading", async () => {
  await using scene = clientsOf(400 * KIB, 8 * KIB);
  await scene.allWait();
  for (const socket of scene.sockets) assert.ok(socket.pendingBytes <= SMALL_BYTES);
});

for (const bodyBytes of [2 * KIB, 400 * KIB]) {
  Deno.test(`stalled memory: so it is where ${bodyBytes} bytes cannot begin to leave`, async () => {
    const largeWriteBytesMax = 256 * KIB;
    await using scene = clientsOf(bodyBytes, 0, { largeWriteBytesMax });
    await scene.allWait();
    const bound = largeWriteBytesMax + 400 * KIB + CLIENTS * SMALL_BYTES;
    assert.ok(scene.pendingBytes <= bound, `${scene.pendingBytes} bytes`);
  });
}

Deno.test("stalled memory: a large write is possible again once the others have left", async () => {
  await using scene = clientsOf(400 * KIB, 0, { largeWriteBytesMax: 1 });
  await scene.allWait();
  for (const socket of scene.sockets) socket.leave();
  const late = new StalledSocket(8 * KIB);
  scene.add(late);
  await eventually("it waits", () => late.pendingBytes > 0);
  assert.ok(late.largestBytes >= 400 * KIB);
});

Deno.test("stalled memory: larder counts waiting bytes, and closing lets go of them", async () => {
  await using scene = clientsOf(400 * KIB, 8 * KIB, {
    sweepEveryMs: 10,
    stalledBytesMax: 2_000 * KIB,
  });
  await scene.allWait();
  await eventually("some are closed", () => scene.server.openCount <= 4);
  // It waits for the answers. Writes of a closed connection may never end.
  await scene.server[Symbol.asyncDispose]();
  assert.ok(scene.sockets.every(({ pendingBytes }) => pendingBytes > 0));
});

Deno.test("stalled memory: larder counts the pieces that a body cannot read again", async () => {
  const answer = () => {
    const source = new StreamSource(ReadableStream.from([new Uint8Array(400 * KIB)]));
    const headers = { "content-length": `${400 * KIB}` };
    return new Answer(new DirectStream(source, KIB), 200, headers);
  };
  const limits = { sweepEveryMs: 10, stalledBytesMax: 2_000 * KIB };
  await using scene = clientsWith(answer, 8 * KIB, limits);
  await scene.allWait();
  await eventually("some are closed", () => scene.server.openCount <= 4);
});

/** Clients that ask for a body of one size, and take so much of it. */
function clientsOf(
  bodyBytes: number,
  takenBytes: number,
  limits: Partial<HttpServerLimits> = {},
): StalledClients {
  return clientsWith(() => new Answer(new Uint8Array(bodyBytes), 200, {}), takenBytes, limits);
}

function clientsWith(
  answerOf: () => Answer,
  takenBytes: number,
  limits: Partial<HttpServerLimits>,
): StalledClients {
  const answer = () => Promise.resolve(answerOf());
  const clients = new StalledClients(answer, limits);
  for (let count = 0; count < CLIENTS; count++) clients.add(new StalledSocket(takenBytes));
  return clients;
}
