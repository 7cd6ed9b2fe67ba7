import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

type Headers = Readonly<Record<string, string>>;

const object = makeStoreObject({ name: "kept", size: 20_000 });
const PIN = `/pin/${object.storePathHash}.narinfo`;
const NARINFO = `/${object.storePathHash}.narinfo`;
const OURS = "cache.test:8501";
const OWN_PAGE = { host: OURS, origin: `http://${OURS}` };

/** The headers of a browser for a page of another site, or under a name that is not ours. */
const FOREIGN: Readonly<Record<string, Headers>> = {
  "another site": { host: OURS, origin: "https://evil.example", "sec-fetch-site": "cross-site" },
  "another site, over HTTP": { host: OURS, origin: "http://evil.example" },
  "a file or a sandbox": { host: OURS, origin: "null" },
  "another port": { host: OURS, origin: "http://cache.test:8502" },
  "the scheme's own port": { host: OURS, origin: "http://cache.test" },
  "another port of localhost": { host: "localhost:8501", origin: "http://localhost:3000" },
  "a name that begins like ours": { host: OURS, origin: "http://cache.test.evil.example:8501" },
  "credentials like ours": { host: OURS, origin: "http://cache.test:8501@evil.example" },
  "two origins": { host: OURS, origin: `http://${OURS}, http://evil.example` },
  "an empty origin": { host: OURS, origin: "" },
  "another scheme": { host: OURS, origin: `chrome-extension://${OURS}` },
  "a neighbour": { ...OWN_PAGE, "sec-fetch-site": "same-site" },
  "two sites": { ...OWN_PAGE, "sec-fetch-site": "same-origin, same-origin" },
  "a link of another site": { host: OURS, "sec-fetch-site": "cross-site" },
  "a name that leads here": { host: "evil.example:8501", origin: "http://evil.example:8501" },
  "such a name, same site": {
    host: "evil.example",
    origin: "http://evil.example",
    "sec-fetch-site": "same-origin",
  },
  "no host": { origin: "http://127.0.0.1" },
  "an address that is none": { host: "127.0.0.1.evil", origin: "http://127.0.0.1.evil" },
};

/** The headers of a browser for our own page. */
const OWN: Readonly<Record<string, Headers>> = {
  "a name of ours": OWN_PAGE,
  "in capitals, with a dot": { host: "Cache.Test.:8501", origin: "http://cache.test.:8501" },
  "an address": { host: "192.0.2.7:8501", origin: "http://192.0.2.7:8501" },
  "an address of IPv6": { host: "[::1]:8501", origin: "http://[::1]:8501" },
  "localhost": { host: "localhost:8501", origin: "http://localhost:8501" },
  "the scheme's own port": { host: "cache.test", origin: "http://cache.test:80" },
  "a proxy that speaks TLS": { host: "cache.test", origin: "https://cache.test" },
  "same origin": { ...OWN_PAGE, "sec-fetch-site": "same-origin" },
  "the user": { host: OURS, "sec-fetch-site": "none" },
};

for (const [what, headers] of Object.entries(FOREIGN)) {
  Deno.test(`access: a browser's request for ${what} changes nothing`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream], allowDelete: true });
    const narPath = await cache.narPath(object.storePathHash);
    await (await cache.get(narPath)).bytes();
    await cache.downloadsOver();
    const asked: (readonly [method: string, path: string])[] = [
      ["POST", "/gc?target=0"],
      ["POST", PIN],
      ["DELETE", NARINFO],
      ["DELETE", narPath],
    ];
    for (const [method, path] of asked) {
      const answer = await cache.request(method, path, headers);
      assert.equal(answer.status, 403, method + path);
      assert.match(await answer.text(), /^Forbidden(: \S+ is no name of this larder; .*)?\n$/);
      assert.equal(answer.headers.get("x-cache"), null);
    }
    assert.equal(await (await cache.get("/pins")).text(), "[]");
    assert.equal((await cache.get(narPath)).headers.get("x-cache"), "HIT");

    await cache.request("POST", PIN);
    assert.equal((await cache.request("DELETE", PIN, headers)).status, 403);
    assert.deepEqual(await (await cache.get("/pins")).json(), [object.storePathHash]);
  });
}

Deno.test("access: our own page, and a user without any, may pin, unpin and run gc", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(object.storePathHash);
  for (const [what, headers] of Object.entries(OWN)) {
    assert.equal((await cache.request("POST", PIN, headers)).status, 200, what);
    assert.equal((await cache.request("DELETE", PIN, headers)).status, 200, what);
    const gc = await cache.request("POST", "/gc?target=0&dry-run=true", headers);
    assert.equal(gc.status, 200, what);
    await gc.text();
  }
});

Deno.test("access: where we speak TLS, a page of our address without it is another", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], usesTls: true });
  await cache.narinfo(object.storePathHash);
  const secure = { host: OURS, origin: `https://${OURS}` };
  assert.equal((await cache.request("POST", PIN, secure)).status, 200);
  assert.equal((await cache.request("POST", PIN, OWN_PAGE)).status, 403);
});

Deno.test("access: programs may call us by any name, and need no header", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(object.storePathHash);
  const programs: readonly Headers[] = [
    {},
    { host: "alias.example", "user-agent": "curl/8.0", accept: "*/*" },
    { host: "alias.example", "user-agent": "Deno/2.6.8", "accept-language": "*" },
    { host: "alias.example", "user-agent": "Prometheus/3.0", accept: "text/plain" },
  ];
  for (const headers of programs) {
    for (const path of [...FIGURES, NARINFO]) {
      assert.equal((await cache.get(path, headers)).status, 200, path);
    }
    for (const method of ["POST", "DELETE"]) {
      assert.equal((await cache.request(method, PIN, headers)).status, 200);
    }
  }
});

/** Routes that show figures of this cache, by a path of each. */
const FIGURES = [
  ...["/", "/stats", "/explain?q=kept", `/explain?path=${object.storePathHash}`],
  ...["/pins", "/pins/closures", "/pins/names", "/pulls", "/metrics", "/client-config"],
];

/** The headers of browsers with a GET; over plain HTTP no header is for this very purpose. */
const READS: readonly Headers[] = [
  { "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0" },
  { "user-agent": "curl/8.0", "accept-language": "en-US,en;q=0.5" },
  { referer: "http://evil.example:8501/" },
  { origin: "http://evil.example:8501" },
  { "sec-fetch-site": "same-origin" },
  { "sec-fetch-mode": "navigate" },
  { "upgrade-insecure-requests": "1" },
];

Deno.test("access: a browser reads no figures of ours under a name that is not ours", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (const signs of READS) {
    for (const path of [...FIGURES, "/sign-in"]) {
      const foreign = { ...signs, host: "evil.example:8501" };
      const answer = await cache.get(path, foreign);
      const line = "Forbidden: evil.example is no name of this larder; add " +
        "--server-allowed-hosts evil.example\n";
      assert.deepEqual([answer.status, await answer.text()], [403, line], path);
      assert.equal((await cache.head(path, foreign)).status, 403);
      for (const host of [OURS, "localhost", "127.0.0.1:8501", "[::1]:8501", "CACHE.TEST."]) {
        const { status } = await cache.get(path, { ...signs, host });
        assert.equal(status, path === "/sign-in" ? 303 : 200, host + path);
      }
    }
    for (const path of ["/nix-cache-info", "/pubkey", "/healthz"]) {
      assert.equal((await cache.get(path, { ...signs, host: "evil.example" })).status, 200);
    }
  }
});

Deno.test("access: people under a name that is not ours read why, and the option", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const shown = async (host: string) => {
    const accept = "text/html,application/xhtml+xml,*/*;q=0.8";
    const answer = await cache.get("/", { ...READS[0], accept, host });
    assert.equal(answer.status, 403);
    return { text: await answer.text(), headers: answer.headers };
  };
  const { text, headers } = await shown("nas.example.net:8501");
  assert.equal(headers.get("content-type"), "text/html; charset=utf-8");
  assert.match(headers.get("content-security-policy") ?? "", /^default-src 'none'; /);
  assert.match(text, /asked for a page of <strong>nas\.example\.net<\/strong>/);
  assert.match(text, /<pre>--server-allowed-hosts nas\.example\.net<\/pre>/);
  // What is no name is not repeated.
  assert.equal((await shown("<script>alert(1)</script>")).text, "Forbidden\n");
});

Deno.test("access: a refusal is a line that says why, and what to do", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await cache.request("POST", PIN, FOREIGN["a name that leads here"]);
  const [found] = cache.logged("info");
  assert.ok(found);
  const { ts: _, request_id: __, ...line } = found;
  assert.deepEqual(line, {
    level: "info",
    msg: "request refused",
    reason: "unknown host",
    method: "POST",
    route: "/pin/{hash}.narinfo",
    host: "evil.example:8501",
    client: "127.0.0.1",
    hint: "add the host with --server-allowed-hosts if it names this cache",
  });
});

Deno.test("access: a client on another machine, or behind a proxy, evicts nothing", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const narPath = await cache.narPath(object.storePathHash);
  await (await cache.get(narPath)).bytes();
  await cache.downloadsOver();
  const gc = async (headers: Headers, peer: string) => {
    const answer = await cache.request("POST", "/gc?target=0", headers, { peer });
    await answer.text();
    return answer.status;
  };

  for (const peer of ["192.0.2.7", "10.0.0.1", "2001:db8::1", "fe80::1", ""]) {
    assert.equal(await gc({}, peer), 403, peer);
    assert.equal(await gc({ "x-forwarded-for": "127.0.0.1" }, peer), 403, peer);
  }
  for (
    const header of ["Forwarded", "X-Forwarded-For", "Via", "X-Real-IP", "X-Forwarded-Host"]
  ) {
    for (const peer of ["127.0.0.1", "unix"]) {
      assert.equal(await gc({ [header]: "for=127.0.0.1" }, peer), 403, header);
    }
  }
  assert.equal((await cache.get(narPath)).headers.get("x-cache"), "HIT");

  for (const peer of ["127.0.0.1", "127.9.9.9", "::1", "unix"]) {
    assert.equal(await gc({}, peer), 200, peer);
  }
  assert.deepEqual(await cache.narNames(), []);
});

Deno.test("access: no answer allows another origin to read it", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const paths = [
    ...["/", "/stats", "/pins", "/metrics", "/nix-cache-info", "/pubkey", "/healthz", "/nothing"],
    ...[NARINFO, await cache.narPath(object.storePathHash), PIN, "/gc", "/%2f"],
  ];
  for (const path of paths) {
    for (const method of ["GET", "HEAD", "POST", "OPTIONS", "DELETE"]) {
      const headers = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Private-Network": "true",
      };
      const { status, headers: answered } = await rawRequest(
        server.port,
        requestText(method, path, headers),
      );
      assert.ok(status >= 200);
      const allowed = [...answered.keys()].filter((name) => name.startsWith("access-control-"));
      assert.deepEqual(allowed, [], `${method} ${path}`);
    }
  }
});
