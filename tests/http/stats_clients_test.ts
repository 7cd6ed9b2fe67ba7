import assert from "node:assert/strict";
import { TrustedProxies } from "../../src/http/proxy/trusted_proxies.ts";
import type { Stats } from "../../src/http/stats/stats.ts";
import { eventually } from "../support/eventually.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { readStats } from "../support/stats_of.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { AS_WRITER, pushOf, uploadCache } from "../support/uploading.ts";

const object = makeStoreObject({ name: "big-1.0", size: 4_000_000 });
const BROWSER = { accept: "text/html" };
const LOOPBACK = { address: "127.0.0.0", prefix: 8, family: "ipv4" } as const;
const PROXIES = new TrustedProxies([LOOPBACK]);

type Transfer = Stats["downloads"]["under_way"][number];

async function downloadsOf(cache: TestCache): Promise<readonly Transfer[]> {
  const stats: Stats = await (await cache.get("/stats")).json();
  return stats.downloads.under_way;
}

/** A client behind the proxy, once its response has begun. */
async function reader(port: number, path: string, client: string): Promise<RawConnection> {
  const connection = await RawConnection.open(port);
  await connection.send(requestText("GET", path, { "X-Forwarded-For": client }));
  assert.equal((await connection.answer()).status, 200);
  return connection;
}

Deno.test("stats clients: a download lists five addresses, and counts all", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, path } = scene;
  gate.release(1_000_000);
  await using server = cache.listen({ proxies: PROXIES });
  await using readers = new AsyncDisposableStack();
  const first = await reader(server.port, path, "192.0.2.1");
  for (const last of [2, 2, 3, 4, 5, 6, 7]) {
    readers.use(await reader(server.port, path, `192.0.2.${last}`));
  }
  const listed = (numbers: readonly number[]) => numbers.map((last) => `192.0.2.${last}`);
  const [before] = await downloadsOf(cache);
  assert.deepEqual([before?.client_count, before?.clients], [7, listed([1, 2, 3, 4, 5])]);

  // Who has left is noticed at the next bytes.
  let released = 0;
  const isCountOf = (count: number) => async () => {
    if (released++ < 200) gate.release(10_000);
    return (await downloadsOf(cache))[0]?.client_count === count;
  };
  await first[Symbol.asyncDispose]();
  await eventually("the first client is gone", isCountOf(6));
  assert.deepEqual((await downloadsOf(cache))[0]?.clients, listed([2, 3, 4, 5, 6]));
  const page = await (await cache.get("/", BROWSER)).text();
  assert.match(page, /to 192\.0\.2\.2, 192\.0\.2\.3, [^<]*, 192\.0\.2\.6 and 1 more</);

  await readers.disposeAsync();
  await eventually("all are gone", isCountOf(0));
  gate.open();
  await cache.downloadsOver();
});

Deno.test("stats clients: a client sees its own address, as a trusted proxy says it", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen({ proxies: PROXIES });
  for (const path of ["/stats", "/"]) {
    const headers = { "X-Forwarded-For": "192.0.2.1" };
    const { body } = await rawRequest(server.port, requestText("GET", path, headers));
    assert.equal(JSON.parse(new TextDecoder().decode(body)).client, "192.0.2.1");
  }
});

Deno.test("stats clients: each pass-through has the address of its client", async () => {
  await using scene = await GatedNar.open(object, { limitBytes: 1_000 });
  const { gate, cache, path } = scene;
  gate.release(1_000_000);
  await using server = cache.listen({ proxies: PROXIES });
  await using readers = new AsyncDisposableStack();
  for (const client of ["192.0.2.1", "2001:db8::2"]) {
    readers.use(await reader(server.port, path, client));
  }
  const shown = (await downloadsOf(cache)).map(({ clients, client_count }) => [
    client_count,
    ...clients,
  ]);
  assert.deepEqual(shown, [[1, "192.0.2.1"], [1, "2001:db8::2"]]);
  gate.open();
});

Deno.test("stats clients: an upload shows its client and how far it is", async () => {
  await using cache = await uploadCache();
  await using server = cache.listen({ proxies: PROXIES });
  const { narPath, file: { bytes } } = await pushOf(object);
  const head = requestText("PUT", narPath, {
    "Authorization": AS_WRITER.authorization,
    "Content-Length": String(bytes.length),
    "X-Forwarded-For": "192.0.2.1",
  });
  await using connection = await RawConnection.open(server.port);
  await connection.send(head);
  await connection.send(bytes.subarray(0, 1_000_000));
  const uploads = async () => (await readStats(await cache.get("/stats"))).uploads;
  await eventually("the first million is here", async () => {
    return (await uploads()).under_way[0]?.received_bytes === 1_000_000;
  });
  const { count, under_way: [first] } = await uploads();
  const { started_at: _, bytes_per_second: _2, seconds_left: _3, ...shown } = first ?? {};
  assert.equal(count, 1);
  assert.deepEqual(shown, {
    nar: narPath.slice("/upload/nar/".length),
    name: null,
    state: "receiving",
    received_bytes: 1_000_000,
    file_bytes: bytes.length,
    client_count: 1,
    clients: ["192.0.2.1"],
  });
  const page = await (await cache.get("/", BROWSER)).text();
  assert.match(page, /<h3>Uploading now<\/h3><ul[^>]*>[^]*>from 192\.0\.2\.1</);

  await connection.send(bytes.subarray(1_000_000));
  assert.equal((await connection.answer()).status, 201);
  assert.deepEqual(await uploads(), { count: 0, under_way: [] });
  assert.doesNotMatch(await (await cache.get("/", BROWSER)).text(), /Uploading now/);
});

Deno.test("stats clients: without a trusted proxy the peer is the client", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, path, server } = scene;
  gate.release(1_000_000);
  await using _reader = await reader(server.port, path, "192.0.2.1");
  assert.deepEqual((await downloadsOf(cache))[0]?.clients, ["127.0.0.1"]);
  gate.open();
});

for (const roles of [[], ["read"], ["admin"], ["write", "admin"], ["read", "admin"]] as const) {
  const set = roles.join(" and ") || "no";
  Deno.test(`stats clients: with ${set} tokens, only who may pin sees addresses`, async () => {
    const configured: ReadonlySet<string> = new Set(roles);
    const tokens = roles.map((role) => ({ name: role, role, secret: role }));
    const headersOf = (secret: string): Record<string, string> =>
      secret === "" ? {} : { Authorization: `Bearer ${secret}` };
    const strongest = headersOf(roles.at(-1) ?? "");
    await using scene = await GatedNar.open(object, { tokens }, strongest);
    const { gate, cache, path } = scene;
    gate.release(1_000_000);
    await using server = cache.listen({ proxies: PROXIES });
    await using connection = await RawConnection.open(server.port);
    const download = { "X-Forwarded-For": "192.0.2.1", ...strongest };
    await connection.send(requestText("GET", path, download));
    assert.equal((await connection.answer()).status, 200);

    for (const token of ["", "guess", ...roles]) {
      const isRefused = configured.has("read") && !configured.has(token);
      const mayPin = configured.has("admin") ? token === "admin" : !isRefused;
      for (
        const [place, accept] of [["/", "text/html"], ["/", "*/*"], ["/stats", "*/*"]] as const
      ) {
        const answer = await cache.get(place, { accept, ...headersOf(token) });
        const text = await answer.text();
        const what = `${place} as ${accept} with ${token}`;
        assert.equal(answer.status, isRefused ? 401 : 200, what);
        assert.equal(text.includes("192.0.2.1"), mayPin, what);
        const count = accept === "text/html" ? />to 1 client</ : /"client_count":1,/;
        if (!isRefused && !mayPin) assert.match(text, count, what);
      }
    }
    gate.open();
  });
}
