import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate } from "../support/faults.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const NOBODY = { upstreams: [] };

const REQUEST = "GET /healthz HTTP/1.1\r\nHost: larder\r\n\r\n";

Deno.test("slow: a client that leaves while its answer is prepared is noticed", async () => {
  const object = makeStoreObject({ name: "late", size: 3_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  await using server = cache.listen({ sweepEveryMs: 20 });
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

function closedReasons(cache: TestCache): readonly unknown[] {
  return cache.log.filter(({ msg }) => msg === "connections closed").map(({ reason }) => reason);
}
