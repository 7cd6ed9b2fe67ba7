import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { dropped, type Fault, heldUntil, status } from "../support/faults.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "n5glp21rsz314qssw9fbvfswgy3kc68f";
const LOG = `/log/${HASH}-hello.drv`;
const LISTING = `/${HASH}.ls`;
const DEBUGINFO = "/debuginfo/0123456789abcdef";
const MIB = 1 << 20;
/** The most that may be in flight in the sockets when larder gives up a body. */
const IN_FLIGHT_BYTES = 16 * MIB;
const LIMIT_MS = 20_000;
/** The collector of garbage would end the connection later. */
const LEFT_WITHIN_MS = 2_000;

const DOCUMENTS = { [LOG]: "done\n", [LISTING]: '{"version":1}', [DEBUGINFO]: '{"archive":"x"}' };

const FAULTS: Readonly<Record<string, Fault>> = {
  "500": status(500),
  "a reset": dropped(),
  "no JSON": bodyOf("<html>please log in</html>"),
  "half a JSON": bodyOf('{"version":1,"root":{}'),
  "a JSON array": bodyOf("[]"),
  "16 GB announced": (answer) => ({ ...answer, framing: 16e9 }),
};

for (const [name, fault] of Object.entries(FAULTS)) {
  const paths = /JSON/.test(name) ? [LISTING, DEBUGINFO] : [LOG, LISTING, DEBUGINFO];
  Deno.test(`documents: ${name} is a 404, and is not remembered`, async () => {
    await using upstream = await fakeUpstream({ documents: DOCUMENTS });
    upstream.breakDocument(fault);
    for (const path of paths) {
      // A log of that size is sent until it breaks off.
      if (name === "16 GB announced" && path !== DEBUGINFO) continue;
      await using cache = await TestCache.open({ upstreams: [upstream] });
      const answer = await cache.get(path);
      assert.deepEqual([answer.status, answer.headers.get("x-cache")], [404, "MISS"]);
      assert.equal(await cache.metadata.documentBytes(), 0);
      upstream.mend();
      const mended = await cache.get(path);
      assert.equal(mended.status, 200);
      upstream.breakDocument(fault);
    }
  });
}

Deno.test("documents: a log above the bound is forwarded whole, and not kept", async () => {
  const log = "0123456789abcde\n".repeat(17 * MIB / 16);
  await using upstream = await fakeUpstream({ documents: { [LOG]: log } });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  for (const framing of ["chunked", undefined] as const) {
    upstream.mend();
    upstream.breakDocument((answer) => ({ ...answer, framing: framing ?? answer.framing }));
    const ask = () => rawRequest(server.port, requestText("GET", LOG));
    for (const answer of await Promise.all([ask(), ask()])) {
      assert.deepEqual([answer.status, answer.complete], [200, true]);
      assert.equal(new TextDecoder().decode(answer.body) === log, true);
    }
  }
  assert.equal(await cache.metadata.documentBytes(), 0);
  const [get, head] = await Promise.all([cache.get(LOG), cache.head(LOG)]);
  await get.body?.cancel();
  assert.equal(head.headers.get("content-length"), String(log.length));
  assert.equal(get.headers.get("content-length"), String(log.length));
});

Deno.test("documents: a log above the bound that breaks off breaks its connection", async () => {
  const log = "x".repeat(17 * MIB);
  await using upstream = await fakeUpstream({ documents: { [LOG]: log } });
  upstream.breakDocument((answer) => ({ ...answer, framing: log.length + 1 }));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const answer = await rawRequest(server.port, requestText("GET", LOG));
  assert.deepEqual([answer.status, answer.complete], [200, false]);
});

Deno.test("documents: a log without an end holds little, and ends with its client", async () => {
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  upstream.breakDocument((answer) => ({ ...answer, framing: "chunked", body: zeros() }));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  {
    await using client = await RawConnection.open(server.port);
    await client.send(requestText("GET", LOG));
    const { status, reader } = await client.answer();
    assert.equal(status, 200);
    assert.equal((await reader.read(64)).length, 64);
    const [request] = upstream.matching(LOG);
    assert.ok((request?.sentBytes ?? 0) < 17 * MIB + IN_FLIGHT_BYTES, `${request?.sentBytes}`);
  }
  await eventually("nobody asks the upstream any more", () => upstream.openConnections === 0);
});

Deno.test("documents: an upstream whose document is not needed is not read on", async () => {
  await using preferred = await fakeUpstream({ documents: DOCUMENTS });
  await using other = await fakeUpstream({ documents: DOCUMENTS });
  other.breakDocument((answer) => ({ ...answer, framing: "chunked", body: zeros() }));
  preferred.breakDocument(heldUntil(other.requested(LOG)));
  const upstreams = [preferred, other];
  await using cache = await TestCache.open({ upstreams });
  assert.equal(await (await cache.get(LOG)).text(), DOCUMENTS[LOG]);
  const request = await other.requested(LOG);
  assert.equal(await clock.within(request.finished, LEFT_WITHIN_MS), "left");
});

Deno.test("documents: an upstream that is up again gets requests for absent ones", async () => {
  await using absent = await fakeUpstream();
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  await upstream.stop();
  await using cache = await TestCache.open({ upstreams: [absent, upstream] });
  const isLogged = (text: string) => cache.log.some(({ msg }) => msg === text);
  const others = Array.from({ length: 5 }, (_, at) => `/log/${HASH}-${at}.drv`);
  for (const path of others) await cache.get(path);
  await eventually("it is down", () => isLogged("upstream is down"));
  for (const source of ["MISS", "HIT"]) {
    const answer = await cache.get(LOG);
    assert.deepEqual([answer.status, answer.headers.get("x-cache")], [404, source]);
  }
  await upstream.start();
  await eventually("it is up", () => isLogged("upstream is up again"));
  assert.equal((await cache.get(LOG)).status, 200);
});

Deno.test("documents: a small kind without an end is refused at its bound", async () => {
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  upstream.breakDocument((answer) => ({ ...answer, framing: "chunked", body: zeros() }));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.equal((await cache.get(DEBUGINFO)).status, 404);
  const [request] = upstream.matching(DEBUGINFO);
  assert.ok((request?.sentBytes ?? 0) < MIB + IN_FLIGHT_BYTES, `${request?.sentBytes} bytes`);
});

Deno.test("documents: many that come at once take no more memory than is set aside", async () => {
  const paths = Array.from({ length: 12 }, (_, at) => `/log/${HASH}-${at}.drv`);
  const documents = Object.fromEntries(paths.map((path) => [path, ""]));
  await using upstream = await fakeUpstream({ documents });
  const gate = Promise.withResolvers<void>();
  // The upstream holds each just below the largest size that larder keeps.
  upstream.breakDocument((answer) => ({ ...answer, framing: "chunked", body: held(gate.promise) }));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const answers = paths.map((path) => cache.get(path));
  // Four fit; the others are given to their clients, who do not read yet.
  const early = await clock.within(Promise.any(answers), LIMIT_MS);
  gate.resolve();
  assert.equal(early?.status, 200);
  for (const answer of await Promise.all(answers)) {
    assert.equal((await answer.bytes()).length, 15 * MIB);
  }
  assert.ok(await cache.metadata.documentBytes() <= 64 * MIB);
});

Deno.test("documents: a slow document is forwarded, or refused", async () => {
  let nowMs = 0;
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  const body = new TextEncoder().encode(`{"x":"${"x".repeat(600_000)}"}`);
  upstream.breakDocument((answer) => ({ ...answer, body, framing: "chunked" }));
  // Every look at the clock is six seconds after the one before.
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => nowMs += 6_000 });
  assertSameBytes(await (await cache.get(LOG)).bytes(), body);
  assert.equal((await cache.get(DEBUGINFO)).status, 404);
  assert.equal(await cache.metadata.documentBytes(), 0);
});

Deno.test("documents: one that goes while it is read breaks the connection", async () => {
  const log = "x".repeat(12 * MIB);
  await using upstream = await fakeUpstream({ documents: { [LOG]: log } });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await (await cache.get(LOG)).body?.cancel();
  await eventually("it is kept", async () => await cache.metadata.documentBytes() > 0);
  await upstream.stop();
  await using server = cache.listen();
  await using client = await RawConnection.open(server.port);
  await client.send(requestText("GET", LOG));
  const { status, headers, reader } = await client.answer();
  assert.deepEqual([status, headers.get("x-cache")], [200, "HIT"]);
  const row = await cache.metadata.findDocument(LOG.slice(1) as never);
  assert.ok(row);
  const pieces = [Uint8Array.of(1)];
  const document = { ...row, tag: "other", bodyBytes: 1 };
  await cache.metadata.apply([
    { kind: "put-document", document, pieces, totalBytesMax: Infinity, atMs: 1 },
  ]);
  assert.ok((await reader.read()).length < log.length);
  assert.equal(reader.isComplete, false);
});

Deno.test("documents: one that cannot be stored is served all the same", async () => {
  const documents = { ...DOCUMENTS, [LOG]: "y".repeat(MIB) };
  await using upstream = await fakeUpstream({ documents });
  await using other = await TestCache.open({ upstreams: [] });
  const metadata = new Proxy(other.metadata, {
    get(store, name) {
      if (name === "apply") return () => Promise.reject(new Error("database is locked"));
      const value = Reflect.get(store, name, store);
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
  await using cache = await TestCache.open({ upstreams: [upstream], metadata });
  for (const path of [LOG, LISTING, DEBUGINFO] as const) {
    for (let times = 0; times < 2; times++) {
      const answer = await cache.get(path);
      assert.deepEqual([answer.status, answer.headers.get("x-cache")], [200, "MISS"]);
      assert.equal(await answer.text(), documents[path]);
    }
  }
  assert.equal(cache.logged("error")[0]?.msg, "document not kept");
});

function bodyOf(text: string): Fault {
  const body = new TextEncoder().encode(text);
  return (answer) => ({ ...answer, body, framing: body.length });
}

async function* zeros(): AsyncGenerator<Uint8Array> {
  const piece = new Uint8Array(64 * 1024);
  for (;;) yield piece;
}

async function* held(until: Promise<void>): AsyncGenerator<Uint8Array> {
  const piece = new Uint8Array(MIB);
  for (let count = 0; count < 14; count++) yield piece;
  await until;
  yield piece;
}
