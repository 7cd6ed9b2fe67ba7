import assert from "node:assert/strict";
import type { Delivery } from "../../src/http/message/message.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { HeldClock } from "../support/held_clock.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { prefetchingCache } from "../support/prefetching.ts";
import { scrape } from "../support/scrape.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const BEGIN_MS = Date.UTC(2026, 10, 27, 21, 10);
const HOUR_MS = 3_600_000;
const SILENCE_MS = 10_000;
const KEY = generateSecretKey("both-1");
const WARM = { "x-larder-command": "warm" };

const [firefox, glibc] = ["firefox-145.0", "glibc-2.40"]
  .map((name, seed) => makeStoreObject({ name, seed, size: 60_000 })) as [StoreObject, StoreObject];

const narinfoOf = ({ storePathHash }: StoreObject) => `/${storePathHash}.narinfo`;
const hostOf = ({ url }: FakeUpstream) => new URL(url).host;

interface Shown {
  readonly id: string;
  readonly sentence: string;
  readonly waiting_seconds: number;
  readonly fetching_seconds: number;
  readonly sending_seconds: number;
  readonly waited_for: readonly {
    readonly upstream: string | null;
    readonly seconds: number;
    readonly paths: number;
    readonly asked_in_vain: number;
  }[];
}

/** Each upstream of the newest pull: its seconds, its paths, and what it was asked in vain. */
async function waitsOf(cache: TestCache, query = ""): Promise<readonly (readonly unknown[])[]> {
  const [pull] = await pullsOf(cache, query);
  return (pull?.waited_for ?? []).filter(({ seconds }) => seconds > 0)
    .map((one) => [one.upstream, one.seconds, one.paths, one.asked_in_vain]);
}

async function pullsOf(cache: TestCache, query = ""): Promise<readonly Shown[]> {
  return await (await cache.get(`/pulls${query}`)).json();
}

/** Two upstreams. A request takes as long as `slow` says, once the other one has answered it. */
class Scene implements AsyncDisposable {
  readonly clock = new HeldClock(BEGIN_MS);
  slow: (upstream: FakeUpstream, path: string) => number = () => 0;
  readonly #stack = new AsyncDisposableStack();
  first!: FakeUpstream;
  second!: FakeUpstream;
  cache!: TestCache;

  static async open(withPrefetch = false): Promise<Scene> {
    const scene = new Scene();
    scene.first = scene.#stack.use(await fakeUpstream({ key: KEY, stored: true }));
    scene.second = scene.#stack.use(await fakeUpstream({ key: KEY, stored: true }));
    const upstreams = [scene.first, scene.second];
    const open = withPrefetch ? prefetchingCache : TestCache.open;
    const nowMs = () => scene.clock.wallMs();
    scene.cache = scene.#stack.use(await open({ upstreams, nowMs }));
    for (const upstream of upstreams) {
      upstream.onRequest = async ({ path }) => {
        const ms = scene.slow(upstream, path);
        if (ms === 0) return undefined;
        if (path.endsWith(".narinfo")) await scene.#otherAnswered(upstream);
        scene.clock.advance(ms);
        return undefined;
      };
    }
    return scene;
  }

  async pull(object: StoreObject): Promise<void> {
    await this.cache.narinfo(object.storePathHash);
    await this.nar(object);
  }

  async nar(object: StoreObject): Promise<void> {
    const path = await this.cache.narPath(object.storePathHash, WARM);
    await (await this.cache.get(path)).bytes();
    await this.cache.downloadsOver();
  }

  /** Else the moment of the other's answer were left to the machine. Each narinfo asks both. */
  async #otherAnswered(upstream: FakeUpstream): Promise<void> {
    const other = upstream === this.first ? this.second : this.first;
    await eventually("the other one has answered", async () => {
      const counts = (await scrape(this.cache))
        .nonZero("larder_upstream_request_duration_seconds_count");
      const answered = Object.entries(counts).filter(([labels]) => labels.includes(other.url))
        .reduce((sum, [, value]) => sum + value, 0);
      return answered >= upstream.count(/\.narinfo$/);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
    this.clock[Symbol.dispose]();
  }
}

Deno.test("pulls: the sentence has the seconds and paths of each upstream that was waited for", async () => {
  await using scene = await Scene.open();
  const { first, second, cache, clock } = scene;
  first.add(firefox);
  second.add(glibc);
  scene.slow = (upstream, path) => {
    if (path.startsWith("/nar/")) return upstream === second ? 11_000 : 2_000;
    return upstream === second && path === narinfoOf(glibc) ? 4_000 : 0;
  };
  await scene.pull(firefox);
  await scene.pull(glibc);
  clock.advance(SILENCE_MS);
  const [pull] = await pullsOf(cache);
  assert.match(
    String(pull?.sentence),
    new RegExp(
      `, firefox-145\\.0 and 1 more, 17 s: 15 s waited for ${hostOf(second)} \\(1 path\\), ` +
        `2\\.0 s for ${hostOf(first)} \\(1 path\\); 2 fetched; `,
    ),
  );
});

Deno.test("pulls: a NAR whose narinfo came before its client waits for its own upstream", async () => {
  await using scene = await Scene.open();
  const { second, cache } = scene;
  second.add(firefox);
  await cache.narinfo(firefox.storePathHash, WARM);
  scene.slow = (_, path) => path.startsWith("/nar/") ? 6_000 : 0;
  assert.equal((await cache.get(narinfoOf(firefox))).headers.get("x-cache"), "HIT");
  await scene.nar(firefox);
  assert.deepEqual(await waitsOf(cache), [[hostOf(second), 6, 1, 0]]);
});

Deno.test("pulls: one who joins a NAR that is fetched ahead waits for its upstream from then on", async () => {
  await using scene = await Scene.open(true);
  const { second, cache, clock } = scene;
  second.add(firefox);
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  second.onRequest = async ({ path }) => {
    if (!path.startsWith("/nar/")) return undefined;
    asked.resolve();
    await goOn.promise;
    return undefined;
  };
  const path = await cache.narPath(firefox.storePathHash);
  await asked.promise;
  clock.advance(3_000);
  const joined = cache.get(path);
  clock.advance(5_000);
  goOn.resolve();
  const answer = await joined;
  assert.equal(answer.headers.get("x-cache"), "JOINED");
  await answer.bytes();
  assert.deepEqual(await waitsOf(cache), [[hostOf(second), 5, 1, 0]]);
  await cache.downloadsOver();
});

Deno.test("pulls: a file that comes again from another upstream waits for that one", async () => {
  await using scene = await Scene.open();
  const { first, second, cache, clock } = scene;
  first.add(firefox);
  await scene.pull(firefox);
  await cache.evict(firefox.storePathHash);
  first.remove(firefox);
  second.add(firefox);
  clock.advance(SILENCE_MS);
  scene.slow = (upstream, path) => {
    if (upstream === first) return 0;
    return path.startsWith("/nar/") ? 2_000 : 3_000;
  };
  await scene.pull(firefox);
  assert.deepEqual(await waitsOf(cache), [[hostOf(second), 5, 1, 0]]);
});

Deno.test("pulls: a narinfo that nobody has waits for the upstream that says so last", async () => {
  await using scene = await Scene.open();
  const { second, cache } = scene;
  scene.slow = (upstream, path) => upstream === second && path.endsWith(".narinfo") ? 4_000 : 0;
  assert.equal((await cache.get(narinfoOf(glibc))).status, 404);
  assert.deepEqual(await waitsOf(cache), [[hostOf(second), 4, 0, 1]]);
  const [pull] = await pullsOf(cache);
  assert.ok(pull?.sentence.includes(`4.0 s waited for ${hostOf(second)} (1 asked in vain)`));
});

Deno.test("pulls: a stored narinfo that was asked for again in vain has waited, and is no sending", async () => {
  await using scene = await Scene.open();
  const { first, second, cache, clock } = scene;
  second.add(firefox);
  await cache.narinfo(firefox.storePathHash);
  clock.advance(2 * HOUR_MS);
  let isFirst = true;
  for (const upstream of [first, second]) {
    upstream.onRequest = () => {
      if (upstream === second && isFirst) {
        isFirst = false;
        clock.advance(7_000);
      }
      return new Response(null, { status: 500 });
    };
  }
  const answer = await cache.get(narinfoOf(firefox));
  assert.equal(answer.headers.get("x-cache"), "HIT");
  const [pull] = await pullsOf(cache);
  assert.deepEqual([pull?.waiting_seconds, pull?.sending_seconds], [7, 0]);
  const told = (pull?.waited_for ?? []).reduce((sum, { seconds }) => sum + seconds, 0);
  assert.equal(told, 7);
  assert.ok(pull?.waited_for.every(({ upstream }) => upstream !== null));
});

Deno.test("pulls: who answered last and had nothing was asked in vain", async () => {
  await using scene = await Scene.open();
  const { first, second, cache } = scene;
  second.add(firefox);
  scene.slow = (upstream, path) => upstream === first && path.endsWith(".narinfo") ? 4_000 : 0;
  await scene.pull(firefox);
  assert.deepEqual(await waitsOf(cache), [[hostOf(first), 4, 0, 1]]);
  const [pull] = await pullsOf(cache);
  assert.ok(pull?.sentence.includes(`4.0 s waited for ${hostOf(first)} (1 asked in vain)`));
  const html = await (await cache.get(`/pulls/${pull?.id}`, { accept: "text/html" })).text();
  assert.ok(html.includes(`waited 4.0 s for the narinfo, asking ${hostOf(first)} in vain`), html);
});

/** More than the buffers of a connection hold. */
const large = makeStoreObject({ name: "large-1.0", seed: 9, size: 20_000_000 });

Deno.test("pulls: what a slow client takes from a download that is over is sending", async () => {
  await using scene = await Scene.open();
  const { second, cache, clock } = scene;
  second.add(large);
  const path = await cache.narPath(large.storePathHash, WARM);
  await using server = cache.listen();
  await using connection = await RawConnection.open(server.port);
  await connection.send(requestText("GET", path));
  const { headers, reader } = await connection.answer();
  assert.equal(headers.get("x-cache"), "MISS");
  await cache.downloadsOver();
  clock.advance(13_000);
  await reader.read();
  const pull = await endedPull(cache);
  assert.deepEqual([pull.fetching_seconds, pull.sending_seconds], [0, 13]);
  const html = { accept: "text/html" };
  const page = await (await cache.get("/", html)).text();
  assert.match(page, />Last pull: large-1\.0, 13 s<|>Running pull: large-1\.0, 13 s so far</);
});

Deno.test("pulls: what a client waits for behind the first byte is its upstream's", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using nar = await GatedNar.open(large, { nowMs: () => clock.wallMs() }, WARM);
  const { cache, gate, path, bytes, upstream } = nar;
  let delivery: Delivery | undefined;
  await using server = cache.listen({
    handle: (request, own) => cache.handle(request, delivery = own),
  });
  await using connection = await RawConnection.open(server.port);
  await connection.send(requestText("GET", path));
  gate.release(1_000_000);
  const { reader } = await connection.answer();
  const first = await reader.read(999_999);
  await eventually("the server waits for more", () => delivery?.sentBytes === first.length);
  clock.advance(6_000);
  gate.open();
  await cache.downloadsOver();
  clock.advance(3_000);
  assert.equal(first.length + (await reader.read()).length, bytes.length);
  const pull = await endedPull(cache);
  assert.deepEqual([pull.fetching_seconds, pull.sending_seconds], [6, 3]);
  const whole = await (await cache.get(`/pulls/${pull.id}`)).json();
  assert.equal(whole.slowest[0].upstream, hostOf(upstream));
  assert.match(pull.sentence, new RegExp(`6\\.0 s .*${hostOf(upstream)}`));
});

/** The newest pull, once its only request has ended. */
async function endedPull(cache: TestCache): Promise<Shown> {
  await eventually("its request has ended", async () => (await pullsOf(cache)).length > 0);
  const [pull] = await pullsOf(cache);
  assert.ok(pull);
  return pull;
}
