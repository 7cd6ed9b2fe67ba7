import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { readStats } from "../support/stats_of.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";

const objects = Array.from({ length: 5 }, (_, seed) => makeStoreObject({ name: "slow", seed }));
const [object] = objects as [typeof objects[0] & object];
const LOG_PATHS = objects.map((_, index) => `/log/${String(index).padStart(32, "0")}-slow.drv`);
const documents = Object.fromEntries(LOG_PATHS.map((path) => [path, "built\n"]));
const stored = { objects, documents, stored: true } as const;

const HEADER_TIMEOUT_MS = 100;
/** Several times the header timeout. */
const SLOW_MS = 500;
const narinfoPath = (index: number) => `/${objects[index]?.storePathHash}.narinfo`;

/** The kinds of requests, as an upstream sees them. */
const KINDS = {
  narinfo: /\.narinfo$/,
  nar: /^\/nar\//,
  document: /^\/log\//,
} as const;

/** A limit that leaves no room has the NAR passed through without being kept. */
const WAYS = { "kept": Infinity, "passed through": 1_000 } as const;

for (const [name, path] of [["narinfo", narinfoPath(0)], ["log", LOG_PATHS[0] ?? ""]] as const) {
  for (const isAlone of [true, false]) {
    const where = isAlone ? "the only upstream" : "one beside another without it";
    Deno.test(`slow: a ${name} of ${where} is waited for beyond the header timeout`, async () => {
      await using slow = await fakeUpstream(stored);
      await using other = await fakeUpstream({ stored: true });
      delay(slow, /./);
      await using cache = await open({ upstreams: isAlone ? [slow] : [other, slow] });
      assert.equal((await cache.get(path)).status, 200);
      assert.deepEqual(cache.logged("warn"), []);
    });
  }
}

for (const [way, limitBytes] of Object.entries(WAYS)) {
  for (const method of ["GET", "HEAD"] as const) {
    Deno.test(`slow: ${way}, ${method} of a late NAR of the only upstream is 200`, async () => {
      await using upstream = await fakeUpstream(stored);
      await using cache = await open({ upstreams: [upstream], limitBytes });
      const path = await cache.narPath(object.storePathHash);
      delay(upstream, KINDS.nar);

      const answer = await cache.request(method, path);
      await answer.bytes();

      assert.equal(answer.status, 200);
      assert.equal(upstream.matching(KINDS.nar).length, 1);
      await cache.downloadsOver();
      const failed = cache.log.filter(({ msg }) => /upstream (failed|is down)|broke off/.test(msg));
      assert.deepEqual(failed, []);
    });
  }
}

for (const silent of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
  Deno.test(`slow: three requests of kind ${silent} without an answer stop no other`, async () => {
    await using upstream = await fakeUpstream(stored);
    const limits = { dialTimeoutMs: 10_000, headerTimeoutMs: HEADER_TIMEOUT_MS };
    await using cache = await TestCache.open({
      ...{ upstreams: [upstream], limits, idleTimeoutMs: 300 },
    });
    const narPath = await cache.narPath(object.storePathHash);
    const paths = {
      narinfo: [1, 2, 3].map(narinfoPath),
      nar: await narPaths(cache, silent === "nar"),
      document: LOG_PATHS.slice(2),
    };
    const never = Promise.withResolvers<undefined>();
    const isSilent = (path: string) => KINDS[silent].test(path) || path === "/nix-cache-info";
    upstream.onRequest = ({ path }) => isSilent(path) ? never.promise : undefined;
    const answers = await Promise.all(paths[silent].map((path) => cache.get(path)));
    assert.deepEqual(answers.map(({ status }) => status), [404, 404, 404]);
    await eventually("it is down for them", () => (
      cache.log.some(({ msg, requests }) => msg === "upstream is down" && requests === silent)
    ));

    if (silent !== "document") assert.equal((await cache.get(LOG_PATHS[0] ?? "")).status, 200);
    if (silent !== "narinfo") assert.equal((await cache.get(narinfoPath(4))).status, 200);
    if (silent !== "nar") {
      const answer = await cache.get(narPath);
      assert.equal(answer.status, 200);
      await answer.bytes();
    }
    const { upstreams } = await readStats(await cache.get("/stats"));
    assert.deepEqual([upstreams[0]?.is_up, upstreams[0]?.sends_nars], [
      ...[silent !== "narinfo", silent !== "nar"],
    ]);
    never.resolve(undefined);
    await cache.downloadsOver();
  });
}

Deno.test("slow: after an idle timeout the log's hint names the options", async () => {
  await using upstream = await fakeUpstream(stored);
  const limits = { dialTimeoutMs: 10_000, headerTimeoutMs: HEADER_TIMEOUT_MS };
  await using cache = await TestCache.open({ upstreams: [upstream], limits, idleTimeoutMs: 200 });
  const path = await cache.narPath(object.storePathHash);
  const never = Promise.withResolvers<undefined>();
  upstream.onRequest = () => never.promise;
  assert.equal((await cache.get(path)).status, 404);
  assert.equal((await cache.get(narinfoPath(1))).status, 404);
  const hints = cache.logged("warn").map(({ msg, hint }) => `${msg}: ${hint}`);
  for (const msg of ["upstream failed", "nar not fetched"]) {
    const hint = hints.find((line) => line.startsWith(msg));
    assert.match(hint ?? "", /--cache-upstream-body-idle-timeout/);
    assert.match(hint ?? "", /--cache-upstream-response-header-timeout/);
  }
  never.resolve(undefined);
});

/** The NAR paths of three objects. Fetches their narinfos only where it must. */
async function narPaths(cache: TestCache, isNeeded: boolean) {
  const paths: string[] = [];
  for (const { storePathHash } of isNeeded ? objects.slice(1, 4) : []) {
    paths.push(await cache.narPath(storePathHash));
  }
  return paths;
}

function open(options: TestCacheOptions): Promise<TestCache> {
  const limits = { dialTimeoutMs: 10_000, headerTimeoutMs: HEADER_TIMEOUT_MS };
  return TestCache.open({ limits, idleTimeoutMs: 10_000, ...options });
}

/** The upstream answers these requests late. */
function delay(upstream: FakeUpstream, paths: RegExp): void {
  upstream.onRequest = ({ path }) =>
    paths.test(path)
      ? new Promise((resolve) => setTimeout(() => resolve(undefined), SLOW_MS))
      : undefined;
}
