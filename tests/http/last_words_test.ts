import assert from "node:assert/strict";
import { Answer } from "../../src/http/message/message.ts";
import { PHASE_LIMITS_MS } from "../../src/http/server/connection.ts";
import { eventually } from "../support/eventually.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { TestCache } from "../support/test_cache.ts";
import { TestListener } from "../support/test_listener.ts";

const NOBODY = { upstreams: [] };
/** More than lies between two ends of a connection. */
const BODY = new Uint8Array(20_000_000).fill(120);
const ANNOUNCED = `Content-Length: ${BODY.length}\r\n`;

Deno.test("last words: a late answer reaches a client that has ended its side", async () => {
  await using server = new TestListener({
    sweepEveryMs: 20,
    async handle({ hungUp }) {
      await new Promise((noticed) => hungUp?.addEventListener("abort", noticed));
      return new Answer("late", 200, {});
    },
  });
  await using connection = await RawConnection.open(server.port);
  await connection.send(requestText("GET", "/"));
  await connection.closeWrite();
  const { status, reader } = await connection.answer();
  assert.deepEqual([status, new TextDecoder().decode(await reader.read())], [200, "late"]);
  await eventually("it is over", () => server.server.openCount === 0);
});

/** Requests whose answer is out while their body still comes. */
const REFUSED: Readonly<Record<string, readonly [head: string, status: number]>> = {
  "a body for a method that is not allowed": [`PUT /pins HTTP/1.1\r\nHost: x\r\n${ANNOUNCED}`, 405],
  "a body for nothing": [`POST /nowhere HTTP/1.1\r\nHost: x\r\n${ANNOUNCED}`, 404],
  "a body for GET": [`GET /healthz HTTP/1.1\r\nHost: x\r\n${ANNOUNCED}`, 400],
  "two lengths": [`POST /pins HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n${ANNOUNCED}`, 400],
};

for (const [what, [head, status]] of Object.entries(REFUSED)) {
  Deno.test(`last words: ${what} does not cost its client the answer`, async () => {
    await using cache = await TestCache.open(NOBODY);
    await using server = cache.listen();
    await using connection = await RawConnection.open(server.port);
    await connection.send(`${head}\r\n`);
    await connection.send(BODY);
    const answer = await connection.answer();
    await answer.reader.read();
    assert.deepEqual([answer.status, answer.reader.isComplete], [status, true]);
  });
}

Deno.test("last words: a body that comes too late does not cost the answer", async () => {
  await using cache = await TestCache.open(NOBODY);
  const limitsMs = { ...PHASE_LIMITS_MS, skipping: 100 };
  await using server = cache.listen({ sweepEveryMs: 20, limitsMs });
  await using connection = await RawConnection.open(server.port);
  await connection.send(`POST /nowhere HTTP/1.1\r\nHost: x\r\n${ANNOUNCED}\r\n`);
  await eventually("it is turned away", () => cache.log.some(({ msg }) => msg.includes("closed")));
  await connection.send(BODY);
  const { status, reader } = await connection.answer();
  await reader.read();
  assert.deepEqual([status, reader.isComplete], [408, true]);
  assert.equal((await connection.answer()).status, 0, "there is one answer");
});
