import assert from "node:assert/strict";
import { Failure } from "../../src/base/failure.ts";
import { Answer, type ClientRequest } from "../../src/http/message/message.ts";
import { clock } from "../../src/runtime/current.ts";
import { type RawConnection, rawExchange, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { type ServerScene, serverTest } from "./played_server.ts";
import { atRate, sceneTest } from "./scene.ts";
import { NARS } from "./world_member.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const HALF_BODY = "PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234";
/** More than lies between two ends of a connection. */
const LARGE = new Uint8Array(1_000_000);
const HOUR_MS = 3_600_000;

const HALVES = { "a head": "GET / HTTP/1.1\r\nHo", "a first line": "GET" };

for (const [what, half] of Object.entries(HALVES)) {
  serverTest(
    `half a request: ${what} without an end is 408 after 20 seconds`,
    {},
    async (scene) => {
      const connection = scene.connect();
      await connection.send(half);
      const { status, reader } = await connection.answer();
      // The first sweep of each second that finds the time over.
      assert.deepEqual([status, scene.nowMs], [408, 21_000]);
      await reader.read();
      assert.equal(await closedAtMs(scene), 27_000);
      assert.deepEqual(scene.closedReasons, ["incomplete request"]);
    },
  );
}

const HALF_BODIES = {
  "a body": HALF_BODY,
  "a chunk": "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
  "a chunk's head": "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
};

for (const [what, half] of Object.entries(HALF_BODIES)) {
  serverTest(`half a request: the app gives up ${what}, and its client gets 408 at once`, {
    async handle(request) {
      clock.after(5_000, () => request.giveUpBody?.());
      // Though the client sends nothing: others wait for the memory.
      await assert.rejects(async () => await request.body?.pipeTo(new WritableStream()), Failure);
      return new Answer("", 200, {});
    },
  }, async (scene) => {
    const connection = scene.connect();
    await connection.send(half);
    assert.deepEqual([(await connection.answer()).status, scene.nowMs], [408, 5_000]);
    assert.equal(await closedAtMs(scene), 10_000);
  });
}

serverTest("slow: one byte of a head each second is no progress", {}, async (scene) => {
  const connection = scene.connect();
  await connection.send("GET / HTTP/1.1\r\nX: ");
  const sent = await trickle(connection);
  // 20 seconds for the head, and 30 for a client that does not read that it is refused.
  assert.deepEqual([scene.nowMs, sent], [52_000, 52]);
  assert.deepEqual(scene.closedReasons, ["incomplete request", "refused client keeps sending"]);
});

serverTest("slow: a refused client that keeps sending has 30 seconds", {}, async (scene) => {
  const connection = scene.connect();
  await connection.send("nonsense\r\n\r\n");
  assert.equal((await connection.answer()).status, 400);
  await trickle(connection);
  assert.equal(scene.nowMs, 31_000);
  assert.ok(scene.closedReasons.includes("refused client keeps sending"));
});

serverTest("slow: idle connections have 75 seconds; one without a request is logged", {}, async (
  scene,
) => {
  const [silent, kept] = [scene.connect(), scene.connect()];
  await kept.send(REQUEST);
  assert.equal((await kept.answer()).status, 200);
  assert.equal((await silent.answer()).status, 0);
  assert.equal(scene.nowMs, 76_000);
  assert.equal(await closedAtMs(scene), 76_000);
  // The end of a connection that was of use is no news.
  assert.deepEqual(scene.closedReasons, ["no request"]);
});

serverTest("slow: the empty line in front of a request is no part of one", {}, async (scene) => {
  const connection = scene.connect();
  await connection.send("\r");
  await connection.send("\n");
  assert.equal((await connection.answer()).status, 0, "closed as idle, without a 408");
  assert.equal(scene.nowMs, 76_000);
});

for (const framing of ["Content-Length: 10", "Transfer-Encoding: chunked"]) {
  const head = `POST / HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n`;
  serverTest(`slow: an unread body by ${framing} has 20 seconds to end`, {}, async (scene) => {
    const [stopped, trickling] = [scene.connect(), scene.connect()];
    await stopped.send(`${head}5\r\nabc`);
    await trickling.send(framing.startsWith("T") ? `${head}fff\r\n` : head.replace("10", "999"));
    const trickled = trickle(trickling);
    for (const connection of [stopped, trickling]) {
      assert.equal((await connection.answer()).status, 408);
      assert.equal(scene.nowMs, 21_000);
    }
    await trickled;
    assert.equal(await closedAtMs(scene), 52_000);
    assert.deepEqual(scene.closedReasons, [
      "incomplete request body",
      "refused client keeps sending",
    ]);
  });
}

const failures: unknown[] = [];
const readsAll = async ({ body }: ClientRequest) => {
  await new Response(body).bytes().catch((error) => failures.push(error));
  return new Answer("", 200, {});
};

serverTest("slow: between two pieces of a body that the app reads lie 30 seconds at most", {
  handle: readsAll,
}, async (scene) => {
  const connection = scene.connect();
  await connection.send(HALF_BODY);
  await clock.pause(29_900);
  await connection.send("5");
  assert.equal((await connection.answer()).status, 408);
  assert.equal(scene.nowMs, 60_000);
  await clock.pause(0);
  assert.equal(failures.length, 1, "the app is told");
  assert.equal(await closedAtMs(scene), 66_000);
});

serverTest("slow: a client whose body the app works on for an hour is not the one that stalls", {
  async handle({ body }) {
    for await (const _piece of body ?? []) await clock.pause(HOUR_MS / 2);
    return new Answer("", 200, {});
  },
}, async (scene) => {
  const connection = scene.connect();
  await connection.send(HALF_BODY);
  await clock.pause(1_000);
  await connection.send("56789");
  assert.deepEqual([(await connection.answer()).status, scene.nowMs], [200, HOUR_MS]);
});

serverTest("slow: an answer after an hour reaches a client that has ended its side", {
  async handle() {
    await clock.pause(HOUR_MS / 2);
    return new Answer("late", 200, {});
  },
}, async (scene) => {
  const connection = scene.connect();
  await connection.send(requestText("GET", "/"));
  await connection.closeWrite();
  const { status, reader } = await connection.answer();
  assert.deepEqual([status, new TextDecoder().decode(await reader.read())], [200, "late"]);
  assert.equal(await closedAtMs(scene), HOUR_MS / 2);
});

const large = makeStoreObject({ name: "large", size: LARGE.length });

sceneTest(
  "slow: a client that takes nothing for five minutes is closed, and its file with it",
  { objects: [large], upstreams: [{}] },
  async (scene) => {
    const path = await scene.narPath(large);
    await scene.get(path);
    await scene.downloadsOver();
    // The members' sweeps began before.
    const connection = scene.connect();
    const startedAtMs = scene.nowMs;
    await connection.send(requestText("GET", path));
    const isClosed = () => scene.logged("connections closed").length > 0;
    while (!isClosed()) await scene.pause(100);
    assert.equal(scene.nowMs - startedAtMs, 301_000);
    assert.equal(scene.logged("connections closed")[0]?.["reason"], "stalled client");
    await scene.pause(0);
    const told = scene.log.find(({ x_cache, outcome }) => x_cache === "HIT" && outcome);
    assert.equal(told?.["outcome"], "closed", "the client did not leave");
    assert.deepEqual(scene.files.openPaths().filter((one) => one.startsWith(NARS)), []);
    const { reader } = await connection.answer();
    await reader.read();
    assert.ok(!reader.isComplete, "it sees that it has not all");
  },
);

sceneTest(
  "slow: a reader that stalls holds up no other reader of its download",
  { objects: [large], upstreams: [{}] },
  async (scene) => {
    const path = await scene.narPath(large);
    scene.behave(0, { nar: atRate(LARGE.length) });
    await using slow = scene.connect();
    await slow.send(requestText("GET", path));
    const others = Array.from({ length: 8 }, () => (
      rawExchange(scene.connect(), requestText("GET", path))
    ));
    const { reader } = await slow.answer();
    for (let count = 0; count < 10; count++) await reader.read(1);

    const startedAtMs = scene.nowMs;
    for (const { status, complete, body } of await Promise.all(others)) {
      assert.deepEqual([status, complete, body.length], [200, true, large.nar.length]);
    }
    assert.ok(scene.nowMs - startedAtMs <= 1_000, "as long as the upstream takes");
    assert.deepEqual(scene.counts(/^\/nar\//), [1]);
  },
);

serverTest(
  "crowd: the limit is as before a minute after handles ran out",
  { connectionsMax: 50 },
  async ({ server }) => {
    // Many notice at once that none are left.
    for (let count = 0; count < 100; count++) server.handlesRanOut();
    const limits = new Set<number>();
    for (; server.openMax < 50; await clock.pause(1_000)) limits.add(server.openMax);
    assert.deepEqual([...limits], [1, 2, 3, 5, 8, 12, 18, 27, 41]);
  },
);

const sendsLarge = ({ url }: ClientRequest) => (
  Promise.resolve(new Answer(url === "/large" ? LARGE : "", 200, {}))
);

serverTest(
  "crowd: the client that has stalled for the longest time makes room after 30 seconds",
  { connectionsMax: 3, handle: sendsLarge },
  async (scene) => {
    const kept = scene.connect();
    await kept.send(REQUEST);
    await (await kept.answer()).reader.read();
    const oldest = await stalled(scene);
    await clock.pause(5_000);
    const newer = await stalled(scene);
    // An idle client makes room, too, but later than one that stalls.
    for (; scene.nowMs < 31_000; await clock.pause(1_000)) {
      await kept.send(REQUEST);
      await (await kept.answer()).reader.read();
    }
    const fourth = scene.connect();
    await fourth.send(REQUEST);
    assert.equal((await fourth.answer()).status, 200);
    assert.deepEqual([scene.closedReasons, scene.server.openCount], [["making room"], 3]);
    await kept.send(REQUEST);
    assert.equal((await kept.answer()).status, 200);
    assert.deepEqual(await Promise.all([oldest, newer].map(isWhole)), [false, true]);
  },
);

serverTest(
  "crowd: where those that take nothing hold much, the oldest of them goes",
  { stalledBytesMax: LARGE.length, handle: sendsLarge },
  async (scene) => {
    const oldest = await stalled(scene);
    await clock.pause(1_000);
    const newer = await stalled(scene);
    while (scene.closedReasons.length === 0) await clock.pause(100);
    assert.deepEqual(scene.closedReasons, ["memory of stalled clients"]);
    assert.deepEqual(await Promise.all([oldest, newer].map(isWhole)), [false, true]);
  },
);

/** A client that asks for more than the connection holds, and takes nothing. */
async function stalled(scene: ServerScene): Promise<RawConnection> {
  const connection = scene.connect();
  await connection.send(requestText("GET", "/large"));
  return connection;
}

async function isWhole(client: RawConnection): Promise<boolean> {
  const { reader } = await client.answer();
  await reader.read();
  return reader.isComplete;
}

/** Sends a byte each second until the connection is closed; their number. */
async function trickle(connection: RawConnection): Promise<number> {
  for (let sent = 0;; sent++) {
    try {
      await connection.send("x");
    } catch {
      return sent;
    }
    await clock.pause(1_000);
  }
}

/** When no connection is open any more. */
async function closedAtMs(scene: ServerScene): Promise<number> {
  while (scene.server.openCount > 0) await clock.pause(100);
  return scene.nowMs;
}
