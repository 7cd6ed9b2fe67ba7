import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { rowsOf, Timeline } from "../../src/history/history.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/** The response on `/`, by the client's `Accept` header. */
const ACCEPTED = [
  [BROWSER, "text/html; charset=utf-8"],
  ["text/html", "text/html; charset=utf-8"],
  ["application/json;q=0.5, TEXT/HTML;q=0.8", "text/html; charset=utf-8"],
  ["application/json", "application/json"],
  ["application/json, text/html;q=0.8", "application/json"],
  ["*/*", "application/json"],
  ["text/*", "application/json"],
  ["text/html;q=0", "application/json"],
  ["text/html;q=nonsense", "application/json"],
  ["", "application/json"],
] as const;

async function pageOf(cache: TestCache, headers: HeadersInit = {}): Promise<string> {
  const answer = await cache.get("/", { accept: BROWSER, ...headers });
  assert.equal(answer.status, 200);
  return await answer.text();
}

Deno.test("page: / is HTML for clients that accept it, and JSON for all others", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (const [accept, type] of ACCEPTED) {
    const answer = await cache.get("/", { accept });
    assert.deepEqual([answer.status, answer.headers.get("content-type")], [200, type], accept);
    assert.equal(answer.headers.get("vary"), "Accept");
    await answer.body?.cancel();
  }
  const fields = async (path: string) => Object.keys(await (await cache.get(path)).json());
  assert.deepEqual(await fields("/"), await fields("/stats"));
  const html = await cache.get("/stats", { accept: BROWSER });
  assert.equal(html.headers.get("content-type"), "application/json");
});

Deno.test("page: HEAD equals GET, and another method is 405", async () => {
  await using cache = await TestCache.open({ upstreams: [], nowMs: () => 1_800_000_000_000 });
  await using server = cache.listen();
  for (const [path, Accept] of [["/", BROWSER], ["/", "*/*"], ["/stats", BROWSER]] as const) {
    const [get, head] = await Promise.all(["GET", "HEAD"].map(async (method) => {
      const { status, headers } = await rawRequest(
        server.port,
        requestText(method, path, { Accept }),
      );
      const varying = ["date", "x-request-id"];
      return { status, headers: [...headers].filter(([name]) => !varying.includes(name)) };
    }));
    assert.deepEqual(head, get);
    assert.equal(get?.status, 200);
  }
  const removed = await cache.request("DELETE", "/");
  assert.deepEqual([removed.status, removed.headers.get("allow")], [405, "GET, HEAD, POST"]);
});

Deno.test("page: its policy lets it ask for nothing but the figures", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const answer = await cache.get("/", { accept: BROWSER });
  const html = await answer.text();
  const policy = answer.headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'none'; /);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  for (const element of ["style", "script"]) {
    const found = [...html.matchAll(new RegExp(`<${element}[^>]*>(.*?)</${element}>`, "gs"))];
    assert.equal(found.length, 1, `one ${element}`);
    const hash = createHash("sha256").update(found[0]?.[1] ?? "").digest("base64");
    assert.ok(policy.includes(`${element}-src 'sha256-${hash}'`), element);
  }
  assert.doesNotMatch(html, /\sstyle=|\son\w+=|\ssrc=/, "nothing that the policy forbids");
  assert.doesNotMatch(html, /\{\{/, "nothing that was not filled in");
});

Deno.test("page: the lines for nix.conf have the URL as the browser reached it", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const line = async (headers: HeadersInit) =>
    /(?:^|>)extra-substituters = (.*)$/m.exec(await pageOf(cache, headers))?.[1];
  const unknown = "http://ADDRESS-OF-THIS-CACHE";
  for (
    const [host, url] of [
      ["larder.example:8501", "http://larder.example:8501"],
      ["[2001:db8::1]:80", "http://[2001:db8::1]:80"],
      ["evil.example/x", unknown],
      ['"><script>alert(1)</script>', unknown],
      ["user:password@evil.example", unknown],
      ["a b", unknown],
      ["x".repeat(300), unknown],
    ] as const
  ) assert.equal(await line({ host }), url, host);
  assert.equal(
    await line({ host: "larder.example", "x-forwarded-proto": "https" }),
    "https://larder.example",
  );
  assert.equal(
    await line({ host: "larder.example", "x-forwarded-proto": "javascript" }),
    "http://larder.example",
  );
  await using secure = await TestCache.open({ upstreams: [], usesTls: true });
  assert.match(await pageOf(secure, { host: "a.example" }), />extra-.* = https:\/\/a\.example$/m);
  assert.match(
    await pageOf(cache),
    new RegExp(`^extra-trusted-public-keys = larder\\.test:[A-Za-z0-9+/]{43}=$`, "m"),
  );
});

Deno.test("page: opened at localhost, its lines have the address that other machines reach", async () => {
  const reachableUrl = (url: string) => Promise.resolve(url.replace("localhost", "nas"));
  await using cache = await TestCache.open({ upstreams: [], reachableUrl });
  const html = await pageOf(cache, { host: "localhost:8501" });
  assert.match(html, /extra-substituters = http:\/\/nas:8501$/m);
  assert.doesNotMatch(html, /localhost:/);
});

Deno.test("page: where the address is unknown, it says what to put in", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const html = await pageOf(cache, { host: "a b" });
  assert.match(html, /put the address that clients reach in place of ADDRESS-OF-THIS-CACHE/);
});

Deno.test("page: a cache that signs nothing names the keys of its upstreams", async () => {
  await using upstream = await fakeUpstream({});
  await using cache = await TestCache.open({ upstreams: [upstream], secretKey: undefined });
  const escaped = upstream.publicKey.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  assert.match(await pageOf(cache), new RegExp(`^extra-trusted-public-keys = ${escaped}$`, "m"));
  assert.equal((await (await cache.get("/stats")).json()).public_key, null);
});

Deno.test("page: a new cache begins with its lines, one with traffic with what runs now", async () => {
  const object = makeStoreObject({ name: "hello-1.0" });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const titles = async () =>
    [...(await pageOf(cache)).matchAll(/<h2[^>]*>([^<]*)/g)].map(([, title]) => title);
  const [status, ...parts] = await titles();
  assert.equal(status, "All is well");
  assert.deepEqual(parts.slice(0, 2), ["Use this cache", "Now"]);
  assert.equal(parts.at(-1), "History");

  await cache.narinfo(object.storePathHash);
  const [, ...later] = await titles();
  assert.equal(later[0], "Now");
  assert.deepEqual(later.slice(-2), ["History", "Use this cache"]);
  assert.deepEqual(later.toSorted(), parts.toSorted(), "the same parts");
});

Deno.test("page: an idle hour has no chart, and the day has those that tell something", async () => {
  const nowMs = Date.UTC(2026, 2, 17, 23);
  await using cache = await TestCache.open({ upstreams: [], nowMs: () => nowMs });
  const past = new Timeline();
  for (const hours of [3, 5, 6, 9, 12]) {
    const amounts = { nar_hits: hours, served_bytes: hours * 2 ** 20 };
    past.merge(rowsOf(amounts, nowMs - hours * 3_600_000));
  }
  await cache.metadata.recordHistory(past.rows(), []);
  await cache.startHistory();
  const chartsOf = async (range: string) => {
    const answer = await cache.get(`/?range=${range}`, { accept: BROWSER });
    const [, charts = ""] =
      /<div id="charts" data-live>(.*?)<\/section>/s.exec(await answer.text()) ??
        [];
    const titles = [...charts.matchAll(/<figcaption><span class="label">([^<]*)/g)];
    const text = charts.replaceAll(/<[^>]*>/g, "").replaceAll(/\s+/g, " ").trim();
    return { titles: titles.map(([, title]) => title), text };
  };
  const hour = await chartsOf("hour");
  assert.deepEqual(hour, { titles: [], text: "Nothing was requested in the last hour." });
  const day = await chartsOf("day");
  assert.deepEqual(day.titles, ["Served and fetched", "Requests"]);
  assert.match(
    day.text,
    /Too few changes in the last day for a chart: hit ratio 100 %, saved 0 B, downloads in flight 0, stored 0 B, evicted 0 B\./,
  );
});

Deno.test("page: names from elsewhere appear as text, whatever they look like", async () => {
  const object = makeStoreObject({ name: "hello-1.0" });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const problems = {
    list: () => [{
      part: "image",
      event: "upstream-failed" as const,
      level: "error" as const,
      message: "<img src=x onerror=alert(1)>",
      facts: { upstream: `https://x/"'&<b>` },
      count: 1,
      firstAtMs: 0,
      begunAtMs: 0,
      lastAtMs: 0,
      overAtMs: undefined,
    }],
  };
  await using cache = await TestCache.open({ upstreams: [upstream], problems });
  await cache.narinfo(object.storePathHash);
  await cache.request("POST", `/pin/${object.storePathHash}.narinfo`);
  const html = await pageOf(cache);
  assert.match(html, /&lt;img src=x onerror=alert\(1\)&gt;/);
  assert.match(html, /https:\/\/x\/&quot;&#39;&amp;&lt;b&gt;/);
  assert.doesNotMatch(html, /<img|<b>"/);
  assert.match(html, />hello-1\.0<\/a>/);
});

for (const prefetch of [{ narBytesMax: 0 }, undefined]) {
  const shown = prefetch === undefined ? "is off" : "has its counts";
  Deno.test(`page: fetching ahead ${shown} where the option says so`, async () => {
    await using cache = await TestCache.open({ upstreams: [], ...(prefetch && { prefetch }) });
    const [, figure = ""] = /<dt>Fetched ahead<\/dt><dd>(.*?)<\/dd>/s.exec(await pageOf(cache)) ??
      [];
    const text = figure.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ").trim();
    assert.equal(text, prefetch === undefined ? "off by --cache-prefetch" : "0 used, 0 wasted");
    const { prefetch: { is_on } } = await (await cache.get("/stats")).json();
    assert.equal(is_on, prefetch !== undefined);
  });
}
