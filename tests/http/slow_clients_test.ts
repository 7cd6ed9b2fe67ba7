import assert from "node:assert/strict";
import { statusAnswer } from "../../src/http/message/answer.ts";
import { PHASE_LIMITS_MS, type PhaseLimits } from "../../src/http/server/activity.ts";
import { clock } from "../../src/runtime/current.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate } from "../support/faults.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { TestListener } from "../support/test_listener.ts";

const NOBODY = { upstreams: [] };

/** Quick limits: a test waits for one of them. */
function limits(some: Partial<PhaseLimits>) {
  return { sweepEveryMs: 20, limitsMs: { ...PHASE_LIMITS_MS, ...some } };
}

const REQUEST = "GET /healthz HTTP/1.1\r\nHost: larder\r\n\r\n";

Deno.test("slow: half a request and silence is 408 and closed, and the log says so", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen(limits({ head: 100, lingering: 100 }));
  await using connection = await RawConnection.open(server.port);
  await connection.send("GET /healthz HTTP/1.1\r\nHo");
  assert.equal((await connection.answer()).status, 408);
  await eventually("it is closed", () => server.server.openCount === 0);
  assert.deepEqual(closedReasons(cache), ["incomplete request"]);
});

Deno.test("slow: one byte of a head after the other is no progress", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen(limits({ head: 200 }));
  await using connection = await RawConnection.open(server.port);
  const endless = "GET /healthz HTTP/1.1\r\nX: " + "x".repeat(10_000);
  let sent = 0;
  const startedAtMs = performance.now();
  await assert.rejects(async () => {
    for (const byte of endless) {
      await connection.send(byte);
      sent++;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });
  assert.ok(sent < 1_000 && performance.now() - startedAtMs >= 150, `${sent} bytes`);
  assert.deepEqual(closedReasons(cache), ["incomplete request", "refused client keeps sending"]);
});

Deno.test("slow: an idle connection is closed, and logged if it never had a request", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen(limits({ idle: 200 }));
  await using silent = await RawConnection.open(server.port);
  await using kept = await RawConnection.open(server.port);
  await kept.send(REQUEST);
  assert.equal((await kept.answer()).status, 200);
  assert.equal((await silent.answer()).status, 0);
  await eventually("both are closed", () => server.server.openCount === 0);
  // The end of a connection that was of use is no news.
  assert.deepEqual(closedReasons(cache), ["no request"]);
});

Deno.test("slow: a body that stops coming is 408 and closed", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen(limits({ skipping: 100 }));
  for (const framing of ["Content-Length: 10", "Transfer-Encoding: chunked"]) {
    await using connection = await RawConnection.open(server.port);
    await connection.send(`POST /pins HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n5\r\nabc`);
    assert.equal((await connection.answer()).status, 408);
  }
  assert.deepEqual(closedReasons(cache), ["incomplete request body"]);
});

Deno.test("slow: a body that trickles in is 408 and closed", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen(limits({ skipping: 500, lingering: 100 }));
  await using connection = await RawConnection.open(server.port);
  await connection.send("PUT /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n");
  const trickle = setInterval(() => connection.send("x").catch(() => undefined), 20);
  try {
    assert.equal((await connection.answer()).status, 408);
  } finally {
    clearInterval(trickle);
  }
  await eventually("it is closed", () => server.server.openCount === 0);
});

Deno.test("slow: a client that takes nothing more is closed, and its file with it", async () => {
  const object = makeStoreObject({ name: "large", size: 30_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  await using server = cache.listen(limits({ sending: 200 }));
  await using connection = await RawConnection.open(server.port);
  await connection.send(requestText("GET", path));
  await eventually("it is closed", () => closedReasons(cache).length > 0);
  assert.deepEqual(closedReasons(cache), ["stalled client"]);
  const told = () => cache.log.find(({ x_cache, outcome }) => x_cache === "HIT" && outcome);
  await eventually("its line is written", () => told() !== undefined);
  assert.equal(told()?.["outcome"], "closed", "the client did not leave");
  const { reader } = await connection.answer();
  await reader.read();
  assert.ok(!reader.isComplete, "it sees that it has not all");
});

Deno.test("slow: a reader that stalls holds up no other reader of its download", async () => {
  const object = makeStoreObject({ name: "shared", size: 30_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  await using server = cache.listen();
  await using slow = await RawConnection.open(server.port);
  await slow.send(requestText("GET", path));
  await gate.reached(0);
  const others = Array.from({ length: 8 }, () => rawRequest(server.port, requestText("GET", path)));
  gate.open();
  const { reader } = await slow.answer();
  for (let count = 0; count < 10; count++) await reader.read(1);

  const { bytes } = await upstream.narFileOf(object);
  for (const answer of await Promise.all(others)) {
    assert.deepEqual([answer.status, answer.complete], [200, true]);
    assert.ok(answer.body.length === bytes.length);
  }
  assert.equal(upstream.count(/^\/nar\//, "GET"), 1);
});

Deno.test("slow: a client that leaves while its answer is prepared is noticed", async () => {
  const object = makeStoreObject({ name: "late", size: 3_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  await using server = cache.listen(limits({}));
  {
    await using connection = await RawConnection.open(server.port);
    await connection.send(requestText("GET", path));
    gate.release(1_000_000);
    await connection.answer();
  }
  // All of the first part may have been sent before it left.
  gate.release(1_000_000);
  await eventually("it is closed", () => server.server.openCount === 0);
  gate.open();
  await cache.downloadsOver();
});

Deno.test("crowd: beyond the limit those without a request make room, logged once", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using server = cache.listen({ connectionsMax: 50 });
  await using stack = new AsyncDisposableStack();
  const used = stack.use(await RawConnection.open(server.port));
  for (let count = 0; count < 300; count++) stack.use(await RawConnection.open(server.port));
  await eventually("some are closed", () => server.server.openCount <= 50);

  assert.equal((await rawRequest(server.port, requestText("GET", "/healthz"))).status, 200);
  assert.equal((await used.answer()).status, 0, "the first goes first");
  assert.ok(server.server.openCount <= 51);
  assert.deepEqual(closedReasons(cache), ["making room"]);
});

Deno.test("crowd: a client with a running response stays; the next one is refused", async () => {
  const object = makeStoreObject({ name: "held", size: 3_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  await using server = cache.listen({ connectionsMax: 4 });
  const answers = Array.from(
    { length: 4 },
    () => rawRequest(server.port, requestText("GET", path)),
  );
  await gate.reached(0);
  await eventually("all four are asked", () => server.server.openCount === 4);
  await eventually("a fifth is refused", async () => {
    await using fifth = await RawConnection.open(server.port);
    await fifth.send(REQUEST).catch(() => undefined);
    return (await fifth.answer()).status === 0;
  });
  gate.open();
  for (const answer of await Promise.all(answers)) assert.ok(answer.complete);
  assert.ok(closedReasons(cache).includes("too many connections"));
});

Deno.test("crowd: after handles have run out, in time as many are taken as before", async () => {
  await using cache = await TestCache.open(NOBODY);
  await using listener = cache.listen({ connectionsMax: 50, sweepEveryMs: 10, raiseAfterMs: 30 });
  const { server } = listener;
  // Many notice at once that none are left.
  for (let count = 0; count < 100; count++) server.handlesRanOut();
  assert.ok(server.openMax < 50);
  await eventually("it is as before", () => server.openMax === 50);
});

Deno.test("crowd: the client that has stalled for the longest time makes room first", async () => {
  await using scene = await LargeNar.open();
  await using server = scene.cache.listen({ connectionsMax: 3, sweepEveryMs: 20, stalledMs: 100 });
  await using kept = await RawConnection.open(server.port);
  await kept.send(REQUEST);
  await (await kept.answer()).reader.read();
  await using oldest = await scene.stalled(server.port);
  await clock.pause(400);
  await using newer = await scene.stalled(server.port);
  await clock.pause(400);
  await eventually("a fourth is answered", async () => {
    await using fourth = await RawConnection.open(server.port);
    await fourth.send(REQUEST).catch(() => undefined);
    return (await fourth.answer()).status === 200 && server.server.openCount === 3;
  });
  assert.ok(closedReasons(scene.cache).includes("making room"));
  await kept.send(REQUEST);
  assert.equal((await kept.answer()).status, 200);
  const ends = await Promise.all([oldest, newer].map(async (client) => {
    const { reader } = await client.answer();
    await reader.read();
    return reader.isComplete;
  }));
  assert.deepEqual(ends, [false, true]);
});

Deno.test("crowd: where those that take nothing hold much, the oldest of them goes", async () => {
  await using scene = await LargeNar.open();
  // A client that reads must not seem to stall where this process is busy for a moment.
  await using server = scene.cache.listen({ sweepEveryMs: 200, stalledBytesMax: 20_000 });
  await using oldest = await scene.stalled(server.port);
  await clock.pause(300);
  await using newer = await scene.stalled(server.port);
  const reason = "memory of stalled clients";
  await eventually("it is closed", () => closedReasons(scene.cache).includes(reason));
  const [first, second] = [await oldest.answer(), await newer.answer()];
  await Promise.all([first, second].map(({ reader }) => reader.read()));
  assert.deepEqual([first.reader.isComplete, second.reader.isComplete], [false, true]);
});

/** A cache that keeps a NAR larger than the buffers between two ends of a connection. */
class LargeNar implements AsyncDisposable {
  readonly #resources = new AsyncDisposableStack();
  readonly #path: string;
  readonly cache: TestCache;

  private constructor(cache: TestCache, path: string) {
    this.cache = cache;
    this.#path = path;
  }

  static async open(): Promise<LargeNar> {
    await using resources = new AsyncDisposableStack();
    const object = makeStoreObject({ name: "large", size: 30_000_000 });
    const upstream = resources.use(await fakeUpstream({ objects: [object], stored: true }));
    const cache = resources.use(await TestCache.open({ upstreams: [upstream] }));
    const path = await cache.narPath(object.storePathHash);
    await (await cache.get(path)).bytes();
    await cache.downloadsOver();
    const scene = new LargeNar(cache, path);
    scene.#resources.use(resources.move());
    return scene;
  }

  /** A client that asks for it and takes nothing. */
  async stalled(port: number): Promise<RawConnection> {
    const connection = await RawConnection.open(port);
    await connection.send(requestText("GET", this.#path));
    return connection;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

function closedReasons(cache: TestCache): readonly unknown[] {
  return cache.log.filter(({ msg }) => msg === "connections closed").map(({ reason }) => reason);
}

Deno.test("slow: a client whose body the app works on is not the one that stalls", async () => {
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using server = new TestListener({
    ...limits({ body: 60 }),
    async handle({ body }) {
      begun.resolve();
      for await (const _piece of body ?? []) await gate.promise;
      return statusAnswer(200, false);
    },
  });
  await using connection = await RawConnection.open(server.port);
  await connection.send("PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
  await begun.promise;
  await connection.send("0123456789");
  setTimeout(() => gate.resolve(), 300);
  assert.equal((await connection.answer()).status, 200);
});

Deno.test("slow: a body that stops coming while the app reads it is 408 and closed", async () => {
  const failures: unknown[] = [];
  await using server = new TestListener({
    ...limits({ body: 60, lingering: 60 }),
    async handle({ body }) {
      await new Response(body).bytes().catch((error) => failures.push(error));
      return statusAnswer(200, false);
    },
  });
  await using connection = await RawConnection.open(server.port);
  await connection.send("PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234");
  assert.equal((await connection.answer()).status, 408);
  await eventually("the app is told", () => failures.length === 1);
});
