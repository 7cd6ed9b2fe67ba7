import { SizeLimit } from "../../src/space/size_limit.ts";
import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";
import { TestListener } from "../support/test_listener.ts";
import { scrape } from "../support/scrape.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 700_000 });
const other = makeStoreObject({ name: "other-1.0", seed: 1 });
const PATH = `/${object.storePathHash}.narinfo`;
const ABSENT = "/0123456789abcdfghijklmnpqrsvwxyz.narinfo";

/** A larder at a port, so that upstreams may name it before it is there. */
class Place implements AsyncDisposable {
  readonly requests: string[] = [];
  #cache: TestCache | undefined;
  readonly #listener = new TestListener({
    handle: (request, delivery) => {
      this.requests.push(`${request.method} ${request.url}`);
      return this.cache.handle(request, delivery);
    },
  });

  get url(): string {
    return this.#listener.url;
  }

  get cache(): TestCache {
    if (this.#cache === undefined) throw new Error("no larder is here yet");
    return this.#cache;
  }

  async open(member: string, options: TestCacheOptions): Promise<TestCache> {
    const space = { limit: SizeLimit.of(Infinity), owner: member, graceMs: 0 };
    this.#cache = await TestCache.open({ trustedKeys: [], space, ...options });
    return this.#cache;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener[Symbol.asyncDispose]();
    await this.#cache?.[Symbol.asyncDispose]();
  }
}

const loopsOf = async (cache: TestCache) =>
  (await scrape(cache)).value("larder_upstream_loops_total");

const warned = (cache: TestCache) =>
  cache.logged("warn").filter(({ msg }) => msg === "upstream leads back here");

Deno.test("loops: a larder that is its own upstream says absent after one request", async () => {
  await using place = new Place();
  const cache = await place.open("host.1.one", { upstreams: [place.url] });
  assert.equal(await loopsOf(cache), 0);
  for (const path of [ABSENT, "/log/0123456789abcdfghijklmnpqrsvwxyz-a.drv"]) {
    assert.equal((await cache.get(path)).status, 404, path);
    assert.equal(place.requests.filter((one) => one === `GET ${path}`).length, 1, path);
  }
  assert.equal(await loopsOf(cache), 2);
  assert.deepEqual(warned(cache).map(({ upstream }) => upstream), [place.url], "once");
  assert.match(String(warned(cache)[0]?.["hint"]), /--cache-upstream-url/);
  // The absence is known for a while, as any other.
  assert.equal((await cache.get(ABSENT)).headers.get("x-cache"), "HIT");
});

Deno.test("loops: what a request's sender does not have, two larders do not ask for twice", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using one = new Place();
  await using two = new Place();
  // Each names the other first. The second alone has the upstream.
  const { publicKey } = upstream;
  const keys = { trustedKeys: [parsePublicKey(publicKey)] };
  const first = await one.open("host.1.one", { ...keys, upstreams: [two.url] });
  const second = await two.open("host.1.two", { ...keys, upstreams: [one.url, upstream] });
  assert.equal((await first.get(ABSENT)).status, 404);
  assert.deepEqual(one.requests.filter((path) => path.endsWith(ABSENT)), [`GET ${ABSENT}`]);
  assert.deepEqual(two.requests.filter((path) => path.endsWith(ABSENT)), [`GET ${ABSENT}`]);
  assert.equal(await loopsOf(first), 1);
  assert.equal(await loopsOf(second), 0);
  // What one of them has, or finds, is no loop.
  const narPath = await first.narPath(object.storePathHash);
  const nar = await first.get(narPath);
  assert.deepEqual(await nar.bytes(), (await upstream.narFileOf(object)).bytes);
  assert.equal(upstream.count(/^\/nar\//), 1);
  await second.downloadsOver();
  const hit = await second.get(narPath);
  assert.deepEqual([hit.headers.get("x-cache"), (await hit.bytes()).length > 0], ["HIT", true]);
});

Deno.test("loops: two that ask each other at once do not wait for each other", async () => {
  await using upstream = await fakeUpstream({ objects: [object, other], stored: true });
  await using one = new Place();
  await using two = new Place();
  const keys = { trustedKeys: [parsePublicKey(upstream.publicKey)] };
  const first = await one.open("host.1.one", { ...keys, upstreams: [two.url] });
  const second = await two.open("host.1.two", { ...keys, upstreams: [one.url, upstream] });
  for (const path of [ABSENT, PATH]) {
    const expected = path === PATH ? 200 : 404;
    const statuses = await Promise.all([first, second, first, second].map(async (cache) => (
      (await cache.get(path)).status
    )));
    assert.deepEqual(statuses, Array.from({ length: 4 }, () => expected), path);
  }
  // The absence of a request that was passed on is not the second larder's own.
  const late = `/${other.storePathHash}.narinfo`;
  const headers = { via: "1.1 larder-host.1.three" };
  upstream.remove(other);
  assert.equal((await second.get(late, headers)).status, 404);
  upstream.add(other);
  assert.equal((await second.get(late)).status, 200);
});

Deno.test("loops: requests to upstreams name the larders on their way, and no host", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({
    upstreams: [upstream],
    space: { limit: SizeLimit.of(Infinity), owner: "secret-host.77.ab-cd", graceMs: 0 },
  });
  const via = "1.0 proxy.example, 1.1 larder-laptop, HTTP/1.1 larder-office (larder)";
  const narPath = await cache.narPath(object.storePathHash);
  await (await cache.get(narPath)).bytes();
  await cache.get(`/${object.storePathHash}.ls`, { via });
  const sent = (pattern: RegExp) =>
    upstream.matching(pattern).map(({ headers }) => headers.get("via"));
  for (const pattern of [/narinfo$/, /^\/nar\//, /^\/nix-cache-info$/]) {
    assert.deepEqual(sent(pattern), ["1.1 larder-ab-cd"], String(pattern));
  }
  const way = "1.1 larder-laptop, 1.1 larder-office, 1.1 larder-ab-cd";
  assert.deepEqual(sent(/\.ls$/), [way]);
  for (const own of ["1.1 larder-ab-cd", "1.1 a, 1.1 larder-secret-host.77.ab-cd, 1.1 b"]) {
    const answer = await cache.get(PATH, { via: own });
    assert.deepEqual([answer.status, answer.headers.get("x-cache")], [404, "MISS"], own);
  }
  const long = Array.from({ length: 16 }, (_, at) => `1.1 larder-${at}`).join(", ");
  assert.equal((await cache.get(PATH, { via: long })).status, 404, "a loop between others");
  assert.equal((await cache.get(PATH, { via: "1.1 larder-laptop" })).status, 200);
  assert.equal((await cache.get("/nix-cache-info", { via: "1.1 larder-ab-cd" })).status, 200);
});
