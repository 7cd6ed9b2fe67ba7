import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { brotliCompressSync, brotliDecompressSync } from "node:zlib";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { type Fault, status } from "../support/faults.ts";
import { nextAnswer } from "../support/next_answer.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "n5glp21rsz314qssw9fbvfswgy3kc68f";
const DRV = `${HASH}-hello-2.12.1.drv`;
const BUILD_ID = "bde350fa1f1bbde3649bfce3ae143b87683d8bf9";

/** One of each kind. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  [`/${HASH}.ls`]: '{"version":1,"root":{"type":"directory","entries":{}}}',
  [`/log/${DRV}`]: "unpacking sources\ndone: \u00e4\n",
  [`/build-trace-v2/${DRV}/out.doi`]: '{"outPath":"x","signatures":["k:c2ln"]}\n',
  [`/realisations/sha256:${"0f".repeat(32)}!out.doi`]: '{"id":"x","outPath":"y"}',
  [`/debuginfo/${BUILD_ID}`]: '{"archive":"../nar/x.nar.xz","member":"lib/debug/x.debug"}',
};
const PATHS = Object.keys(DOCUMENTS);
const LOG = `/log/${DRV}`;
const REALISATION = PATHS.find((path) => path.startsWith("/realisations/")) ?? "";

for (const path of PATHS) {
  Deno.test(`documents: ${path.slice(0, 24)} is fetched once, and kept`, async () => {
    await using upstream = await fakeUpstream({ documents: DOCUMENTS });
    await using cache = await TestCache.open({ upstreams: [upstream] });

    const miss = await cache.get(path);
    const text = await miss.text();
    await upstream.stop();
    const hit = await cache.get(path);

    assert.deepEqual([miss.status, miss.headers.get("x-cache")], [200, "MISS"]);
    assert.deepEqual([hit.status, hit.headers.get("x-cache")], [200, "HIT"]);
    assert.deepEqual([text, await hit.text()], [DOCUMENTS[path], DOCUMENTS[path]]);
    const type = path === LOG ? "text/plain; charset=utf-8" : "application/json";
    assert.equal(hit.headers.get("content-type"), type);
    assert.equal(upstream.count(path), 1);
  });

  Deno.test(`documents: HEAD of ${path.slice(0, 24)} answers like GET`, async () => {
    await using upstream = await fakeUpstream({ documents: DOCUMENTS });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    await using server = cache.listen();
    const first = await fetch(server.url + path, { method: "HEAD" });
    const [get, head] = await Promise.all(
      ["GET", "HEAD"].map((method) => fetch(server.url + path, { method })),
    );
    assert.equal(await head?.text(), "");
    assert.equal(Number(head?.headers.get("content-length")), (await get?.bytes())?.length);
    assert.deepEqual(comparable(head), comparable(get));
    assert.deepEqual(comparable(first, "x-cache"), comparable(get, "x-cache"));
  });
}

Deno.test("documents: many requests at once are one request to the upstream", async () => {
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const responses = await Promise.all(Array.from({ length: 50 }, () => cache.get(LOG)));
  const texts = new Set(await Promise.all(responses.map((response) => response.text())));
  assert.deepEqual([...texts], [DOCUMENTS[LOG]]);
  assert.equal(upstream.count(LOG), 1);
  const sources = responses.map((response) => response.headers.get("x-cache"));
  // A database with few connections reads some rows only once the document is there.
  assert.deepEqual(sources.filter((source) => !["JOINED", "HIT"].includes(source ?? "")), ["MISS"]);
});

Deno.test("documents: one stored while a request reads its row is fetched once", async () => {
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const slow = nextAnswer(cache.metadata, "findDocument");
  const early = cache.get(LOG);
  await slow.read;
  const miss = await cache.get(LOG);
  slow.release();
  const hit = await early;
  assert.deepEqual([miss, hit].map(({ headers }) => headers.get("x-cache")), ["MISS", "HIT"]);
  assert.deepEqual([await hit.text(), await miss.text()], [DOCUMENTS[LOG], DOCUMENTS[LOG]]);
  assert.equal(upstream.count(LOG), 1);
});

Deno.test("documents: a document that the client has is not sent again", async () => {
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const first = await cache.get(LOG);
  await first.body?.cancel();
  const tag = first.headers.get("etag") ?? "";
  const again = await cache.get(LOG, { "if-none-match": `W/"other", ${tag}` });
  assert.deepEqual([again.status, again.body, again.headers.get("etag")], [304, null, tag]);
  assert.equal((await cache.get(LOG, { "if-none-match": '"other"' })).status, 200);
});

Deno.test("documents: how long they may be held is by whether they change", async () => {
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const ages = await Promise.all(PATHS.map(async (path) => {
    const header = (await cache.get(path)).headers.get("cache-control") ?? "";
    return Number(/max-age=([0-9]+)/.exec(header)?.[1]);
  }));
  assert.deepEqual(ages, [86_400, 86_400, 60, 60, 60]);
});

Deno.test("documents: an absent one is requested once, and remembered", async () => {
  await using one = await fakeUpstream();
  await using other = await fakeUpstream();
  await using cache = await TestCache.open({ upstreams: [one, other] });
  for (const path of PATHS) {
    const [first, second] = [await cache.get(path), await cache.get(path)];
    assert.deepEqual([first.status, first.headers.get("x-cache")], [404, "MISS"]);
    assert.deepEqual([second.status, second.headers.get("x-cache")], [404, "HIT"]);
    assert.deepEqual([one.count(path), other.count(path)], [1, 1]);
  }
});

Deno.test("documents: if the first upstream lacks or breaks one, the second has it", async () => {
  const faults: readonly Fault[] = [status(404), status(500), cutHalfway];
  for (const fault of faults) {
    await using one = await fakeUpstream({ documents: DOCUMENTS });
    one.breakDocument(fault);
    await using other = await fakeUpstream({ documents: DOCUMENTS });
    await using cache = await TestCache.open({ upstreams: [one, other] });
    for (const path of PATHS) {
      const answer = await cache.get(path);
      assert.deepEqual([answer.status, await answer.text()], [200, DOCUMENTS[path]]);
    }
  }
});

Deno.test("documents: the preferred upstream's one is served where both have it", async () => {
  await using one = await fakeUpstream({ documents: { [LOG]: "one\n" }, priority: 50 });
  await using other = await fakeUpstream({ documents: { [LOG]: "other\n" }, priority: 10 });
  const upstreams = [one, other];
  await using cache = await TestCache.open({ upstreams, priorities: [50, 10] });
  assert.equal(await (await cache.get(LOG)).text(), "other\n");
});

Deno.test("documents: brotli is decoded or named, other encodings are as they came", async () => {
  const text = "a line of a log\n".repeat(1_000);
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  upstream.breakDocument(encodedAs("br", brotliCompressSync(text)));
  const answer = await cache.get(LOG);
  const body = await answer.bytes();
  // Deno's fetch decodes it in 2.6.8; in 2.9.6 it comes as it was sent.
  const isNamed = answer.headers.get("content-encoding") === "br";
  assert.equal((isNamed ? brotliDecompressSync(body) : Buffer.from(body)).toString(), text);
  assert.equal(Number((await cache.head(LOG)).headers.get("content-length")), body.length);

  upstream.mend();
  const bytes = new TextEncoder().encode("what only a Nix client reads");
  upstream.breakDocument(encodedAs("zstd", bytes));
  for (const source of ["MISS", "HIT"]) {
    const passed = await cache.get(`/${HASH}.ls`);
    assert.equal(passed.headers.get("x-cache"), source);
    assert.equal(passed.headers.get("content-encoding"), "zstd");
    assertSameBytes(await passed.bytes(), bytes);
  }
});

for (const given of ["text/html", "application/octet-stream", "text/plain", ""]) {
  Deno.test(`documents: a type of its kind's, where the upstream says "${given}"`, async () => {
    await using upstream = await fakeUpstream({ documents: DOCUMENTS });
    upstream.breakDocument((answer) => {
      answer.headers.set("content-type", given);
      return answer;
    });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    for (const path of PATHS) {
      for (const source of ["MISS", "HIT"]) {
        const { headers } = await cache.get(path);
        assert.equal(headers.get("x-cache"), source);
        const type = path === LOG ? "text/plain; charset=utf-8" : "application/json";
        assert.equal(headers.get("content-type"), type);
      }
    }
  });
}

Deno.test("documents: an old one that may change is fetched again, or served", async () => {
  let nowMs = 1_000_000;
  const documents: Record<string, string> = { ...DOCUMENTS };
  await using upstream = await fakeUpstream({ documents });
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => nowMs });
  const text = async () => await (await cache.get(REALISATION)).text();
  const old = await text();
  documents[REALISATION] = '{"id":"x","outPath":"z"}';
  assert.equal(await text(), old);
  nowMs += 11 * 60_000;
  assert.equal(await text(), documents[REALISATION]);
  nowMs += 11 * 60_000;
  assert.equal(await text(), documents[REALISATION]);
  assert.equal(await text(), documents[REALISATION]);
  assert.equal(upstream.count(REALISATION), 3);
  nowMs += 11 * 60_000;
  await upstream.stop();
  const stale = await cache.get(REALISATION);
  assert.deepEqual([stale.status, stale.headers.get("x-cache")], [200, "HIT"]);
  assert.equal(await stale.text(), documents[REALISATION]);
});

Deno.test("documents: a log that may lack its end is not taken for good", async () => {
  let nowMs = 1_000_000;
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  upstream.breakDocument((answer) => (
    { ...answer, framing: "close", body: new TextEncoder().encode("unpacking") }
  ));
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => nowMs });
  assert.equal(await (await cache.get(LOG)).text(), "unpacking");
  upstream.mend();
  nowMs += 11 * 60_000;
  assert.equal(await (await cache.get(LOG)).text(), DOCUMENTS[LOG]);
});

Deno.test("documents: all of them stay below their part of the limit", async () => {
  const drvs = Array.from({ length: 10 }, (_, at) => `/log/${HASH}-${at}.drv`);
  const documents = Object.fromEntries(drvs.map((path) => [path, "x".repeat(1_000)]));
  await using upstream = await fakeUpstream({ documents });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 100_000 });
  for (const path of drvs) assert.equal((await (await cache.get(path)).bytes()).length, 1_000);
  assert.equal(await cache.metadata.documentBytes(), 5_000);
  await upstream.stop();
  const statuses = await Promise.all(drvs.map(async (path) => (await cache.get(path)).status));
  assert.deepEqual(statuses, [...Array(5).fill(404), ...Array(5).fill(200)]);
});

Deno.test("documents: credentials of the upstream go with the question", async () => {
  await using upstream: FakeUpstream = await fakeUpstream({ documents: DOCUMENTS });
  const authorization = "Basic dTpw";
  await using cache = await TestCache.open({ upstreams: [upstream], authorization });
  assert.equal((await cache.get(LOG)).status, 200);
  assert.equal(upstream.matching(LOG)[0]?.headers.get("authorization"), authorization);
});

Deno.test("documents: no such name is 404, another method 405, no upstream request", async () => {
  await using upstream = await fakeUpstream();
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const odd = ["/x.ls", "/log/", `/log/${HASH}`, "/log/x.drv", `/build-trace-v2/${DRV}/..doi`];
  const more = [
    "/realisations/x.doi",
    "/debuginfo/xyz",
    `/build-trace-v2/${DRV}`,
    "/realisations/",
  ];
  for (const path of [...odd, ...more, `/log/${DRV}/x`]) {
    assert.equal((await cache.get(path)).status, 404, path);
  }
  for (const path of PATHS) {
    const { status, headers } = await cache.request("PUT", path);
    assert.deepEqual([status, headers.get("allow")], [405, "GET, HEAD"]);
  }
  assert.deepEqual(upstream.requests, []);
});

function cutHalfway(...[answer]: Parameters<Fault>) {
  const body = answer.body as Uint8Array;
  return { ...answer, framing: body.length + 1 };
}

function encodedAs(encoding: string, body: Uint8Array): Fault {
  return (answer) => {
    answer.headers.set("content-encoding", encoding);
    return { ...answer, body, framing: body.length };
  };
}

function comparable(response: Response | undefined, ...but: readonly string[]): unknown {
  const varying = ["date", "x-request-id", ...but];
  return [...response?.headers ?? []].filter(([name]) => !varying.includes(name));
}

Deno.test("documents: the log of a derivation whose name has a question mark is served", async () => {
  const drv = `${HASH}-patch?id=2.drv`;
  const documents = { [`/log/${drv.replace("?", "%3F")}`]: "patched\n" };
  await using upstream = await fakeUpstream({ documents });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  // Nix does not escape it, programs do.
  for (const path of [`/log/${drv}`, `/log/${drv.replace("?", "%3F")}`]) {
    const answer = await cache.get(path);
    assert.deepEqual([answer.status, await answer.text()], [200, "patched\n"], path);
  }
  assert.equal(upstream.count(/^\/log\//), 1);
});
