import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Token } from "../../src/http/access/tokens.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const TOKENS: readonly Token[] = [
  { name: "nix", role: "read", secret: "r3ad-sesame" },
  { name: "ci", role: "write", secret: "wr1te-sesame" },
  { name: "alice", role: "admin", secret: "adm1n-sesame" },
  { name: "bob", role: "admin", secret: "b0b-sesame" },
];
const PIN = "/pin/0123456789abcdfghijklmnpqrsvwxyz.narinfo";

/** Another address for each request: many failures of one slow it. */
let count = 0;
const otherPeer = () => `10.0.0.${++count}`;

const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;

Deno.test("tokens: Bearer, and the password of Basic under any user name", async () => {
  await using cache = await TestCache.open({ upstreams: [], tokens: TOKENS });
  const right = [
    ...["Bearer r3ad-sesame", "bearer r3ad-sesame", "BEARER  r3ad-sesame"],
    ...[basic("nix:r3ad-sesame"), basic(":r3ad-sesame"), basic("any one:r3ad-sesame")],
    basic("nix:r3ad-sesame").replace("Basic", "bAsIc"),
  ];
  const wrong = [
    ...["", "Bearer", "Bearer ", "Bearer r3ad-sesam", "Bearer r3ad-sesame2", "Bearer R3ad-sesame"],
    ...["Basic", "Basic !", basic("r3ad-sesame"), basic("r3ad-sesame:"), basic("a:b:r3ad-sesame")],
    ...["r3ad-sesame", "Digest r3ad-sesame", "Bearer r3ad-sesame, Bearer r3ad-sesame"],
    ...["Bearer nix:r3ad-sesame", `Bearer ${"x".repeat(8_000)}`],
  ];
  // Twice: the second time, larder remembers the right tokens.
  for (const authorization of [...right, ...wrong, ...right, ...wrong]) {
    const { status } = await cache.request("GET", "/pubkey", { authorization }, {
      peer: otherPeer(),
    });
    assert.equal(status, right.includes(authorization) ? 200 : 401, authorization);
  }
});

Deno.test("tokens: of equal secrets the strongest role counts", async () => {
  const secret = "one-for-all";
  const tokens = (["read", "admin", "write"] as const).map((role) => ({
    name: role,
    role,
    secret,
  }));
  await using cache = await TestCache.open({ upstreams: [], tokens });
  assert.equal((await cache.get("/pins", { authorization: `Bearer ${secret}` })).status, 200);
});

Deno.test("tokens: 403 and 401 name the role that the request needs", async () => {
  await using cache = await TestCache.open({ upstreams: [], tokens: TOKENS });
  const lesser = await cache.request("POST", PIN, { authorization: "Bearer wr1te-sesame" });
  assert.equal(lesser.status, 403);
  assert.equal(await lesser.text(), "Forbidden: this needs a token of the role admin\n");
  assert.equal(
    lesser.headers.get("www-authenticate"),
    'Bearer realm="larder", error="insufficient_scope", scope="admin"',
  );
  const none = await cache.request("POST", PIN);
  assert.deepEqual([none.status, await none.text()], [
    401,
    "Unauthorized: this needs a token of the role admin\n",
  ]);
});

Deno.test("tokens: the log names the token of a request, and of a refused one", async () => {
  await using cache = await TestCache.open({ upstreams: [], tokens: TOKENS });
  await cache.request("POST", PIN, { authorization: "Bearer b0b-sesame" });
  // Its line may have a name, which is looked up. The lines of refused requests have none.
  await eventually("it is logged", () => cache.log.some(({ token }) => token === "bob"));
  await cache.request("POST", PIN, { authorization: basic("x:r3ad-sesame") });
  await cache.request("POST", PIN, { authorization: "Bearer guess" });
  const lines = cache.log.filter(({ token, reason }) => token ?? reason)
    .map(({ msg, status, token, reason }) => [msg, status ?? reason, token]);
  assert.deepEqual(lines, [
    ["request", 404, "bob"],
    ["request refused", "role missing", "nix"],
    ["request", 403, "nix"],
    ["request refused", "wrong token", "unknown"],
  ]);
});

Deno.test("tokens: a refused upload says in the log who sent it, and which role it needs", async () => {
  const uploads = { allowed: true, keys: [], requireSignature: false };
  await using cache = await TestCache.open({ upstreams: [], tokens: TOKENS, uploads });
  const refused = async (headers: Readonly<Record<string, string>>) => {
    const path = PIN.replace("/pin", "/upload");
    await (await cache.request("PUT", path, headers, { peer: "10.0.0.9" })).text();
    const line = cache.logged("info").findLast(({ msg }) => msg === "request refused");
    return ["reason", "role", "token", "client"].map((fact) => line?.[fact]);
  };
  const sent = (secret: string) => refused({ authorization: `Bearer ${secret}` });
  assert.deepEqual(await refused({}), ["no token", "write", "none", "10.0.0.9"]);
  assert.deepEqual(await sent("guess"), ["wrong token", "write", "unknown", "10.0.0.9"]);
  assert.deepEqual(await sent("r3ad-sesame"), ["role missing", "write", "nix", "10.0.0.9"]);
});

Deno.test("tokens: no log line at debug shows one, right or wrong, in any spelling", async () => {
  await using cache = await TestCache.open({ upstreams: [], tokens: TOKENS });
  const sent = [...TOKENS.map(({ secret }) => secret), "wr0ng-sesame"]
    .flatMap((secret) => [`Bearer ${secret}`, basic(`user:${secret}`), `Odd ${secret}`]);
  for (const authorization of sent) {
    for (const [method, path] of [["GET", "/stats"], ["POST", PIN], ["POST", "/gc"]] as const) {
      await (await cache.request(method, path, { authorization }, { peer: otherPeer() })).text();
    }
  }
  const text = JSON.stringify(cache.log);
  assert.ok(cache.log.length > sent.length);
  assert.ok(!text.includes("sesame"), text);
  for (const one of sent) assert.ok(!text.includes(one.split(" ")[1] ?? one));
});

/** Routes that compare a token: one needs it, the others show more to its holder. */
const COMPARING: readonly (readonly [path: string, tokens: readonly Token[], wrong: number])[] = [
  ["/pubkey", TOKENS, 401],
  ["/", TOKENS.slice(1), 200],
  ["/stats", TOKENS.slice(1), 200],
];

for (const [path, tokens, wrong] of COMPARING) {
  Deno.test(`tokens: many failures at ${path} slow further ones of an address, no valid client`, async () => {
    await using cache = await TestCache.open({ upstreams: [], tokens });
    await using server = cache.listen();
    const get = (token: string, signal?: AbortSignal) => {
      const headers = { authorization: `Bearer ${token}` };
      return fetch(`${server.url}${path}`, { headers, signal: signal ?? null });
    };
    for (let count = 0; count < 10; count++) {
      assert.equal((await cache.get(path, { authorization: "Bearer guess" })).status, wrong);
    }
    const leaving = new AbortController();
    const guesses = Array.from(
      { length: 5 },
      () => get("guess", leaving.signal).then(() => "answered", () => "left"),
    );
    for (let count = 0; count < 20; count++) {
      const answer = await get("adm1n-sesame");
      assert.equal(answer.status, 200);
      await answer.body?.cancel();
    }
    leaving.abort();
    assert.equal((await Promise.all(guesses)).at(-1), "left");
  });
}

Deno.test("tokens: no shared cache may keep an answer that needed one", async () => {
  const object = makeStoreObject({ name: "secret", size: 2_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const reader = { authorization: "Bearer r3ad-sesame" };
  for (const tokens of [TOKENS, TOKENS.slice(1)]) {
    await using cache = await TestCache.open({ upstreams: [upstream], tokens });
    const isClosed = tokens === TOKENS;
    const headers = isClosed ? reader : {};
    const narinfo = await cache.get(`/${object.storePathHash}.narinfo`, headers);
    const [, url = ""] = /^URL: (.*)$/m.exec(await narinfo.text()) ?? [];
    const etag = narinfo.headers.get("etag") ?? "";
    const answers = [
      narinfo,
      await cache.get(`/${url}`, headers),
      await cache.get(`/${url}`, { ...headers, range: "bytes=0-9" }),
      await cache.head(`/${url}`, headers),
      await cache.get(`/${object.storePathHash}.narinfo`, { ...headers, "if-none-match": etag }),
      await cache.get("/pubkey", headers),
    ];
    for (const [at, answer] of answers.entries()) {
      if (!answer.bodyUsed) await answer.body?.cancel();
      const expected = isClosed ? /^private, max-age=/ : /^public, max-age=/;
      assert.match(answer.headers.get("cache-control") ?? "", expected, `${at}: ${answer.status}`);
    }
    const open = await cache.get("/nix-cache-info", reader);
    assert.match(open.headers.get("cache-control") ?? "", /^public, /);
  }
});

Deno.test("tokens: a PUT outside /upload is logged with its reason, role and token", async () => {
  await using cache = await TestCache.open({ upstreams: [], tokens: TOKENS });
  for (const authorization of ["Bearer wr1te-sesame", "Bearer wrong", undefined]) {
    const headers = authorization === undefined ? {} : { authorization };
    assert.equal((await cache.request("PUT", "/nix-cache-info", headers)).status, 405);
  }
  const lines = cache.log.filter(({ msg }) => msg === "request refused");
  const facts = lines.map(({ reason, role, route, method }) => [reason, role, route, method]);
  assert.deepEqual(facts[0], ["upload elsewhere", "write", "/nix-cache-info", "PUT"]);
  const writer = TOKENS.find(({ secret }) => secret === "wr1te-sesame")?.name;
  assert.deepEqual(lines.map(({ token }) => token), [writer, "unknown", "none"]);
});
