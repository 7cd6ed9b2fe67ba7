import assert from "node:assert/strict";
import type { MetadataBackEnd } from "../../src/app/back_ends/metadata_back_end.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { eventually } from "../support/eventually.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "0".repeat(31);
const HASHES = [..."0123456789abcdfghijklmnpqrsvwxyz"].map((last) =>
  `/explain?path=${HASH}${last}`
);

/** A cache whose name searches and walks wait for the test, or for the end of their clients. */
async function heldCache() {
  const state = { running: 0, most: 0, begun: 0, ended: 0, gate: Promise.withResolvers<void>() };
  const store = new SqliteMetadataStore(await openDatabase(":memory:"));
  const held = async (signal: AbortSignal | undefined) => {
    state.begun++;
    state.most = Math.max(state.most, ++state.running);
    try {
      const { promise, reject } = Promise.withResolvers<never>();
      signal?.addEventListener("abort", () => reject(signal.reason));
      await Promise.race([state.gate.promise, promise]);
    } finally {
      state.running--;
      state.ended++;
    }
  };
  const metadata = new Proxy(store as MetadataBackEnd, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name === "findNamed") {
        return async (text: string, countMax: number, signal?: AbortSignal) => {
          await held(signal);
          return await target.findNamed(text, countMax, signal);
        };
      }
      if (name === "pathTimes") {
        return async (hash: Parameters<typeof target.pathTimes>[0]) => {
          await held(undefined);
          return await target.pathTimes(hash);
        };
      }
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const cache = await TestCache.open({ upstreams: [], metadata });
  return { cache, state };
}

for (
  const [kind, paths] of [
    ["explanations", [
      ...HASHES,
      ...HASHES.map((path) => `${path}-a`),
      ...HASHES.map((path) => `${path}-b`),
    ]],
    ["searches", Array.from({ length: 120 }, (_, at) => `/explain?q=name-${at}`)],
    ["searches of the page", Array.from({ length: 120 }, (_, at) => `/?q=name-${at}`)],
  ] as const
) {
  Deno.test(`expensive reads: of a crowd of ${kind} one runs, some wait, others get 503`, async () => {
    const { cache, state } = await heldCache();
    await using _cache = cache;
    const answers = paths.map((path) => cache.get(path, { accept: "text/html" }));
    await eventually("one runs", () => Promise.resolve(state.running === 1));
    const refused = await Promise.race(answers);
    assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "5"]);
    assert.equal((await cache.get("/healthz")).status, 200);

    state.gate.resolve();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    const good = statuses.filter((status) => status === 200).length;
    assert.deepEqual([good, statuses.filter((status) => status === 503).length], [
      33,
      paths.length - 33,
    ]);
    assert.deepEqual([state.most, state.begun], [1, 33]);
  });
}

Deno.test("expensive reads: abandoned searches end, and the next client has its answer", async () => {
  const { cache, state } = await heldCache();
  await using _cache = cache;
  await using server = cache.listen();
  const client = new AbortController();
  const searches = Array.from(
    { length: 600 },
    (_, at) =>
      fetch(`${server.url}/explain?q=name-${at}`, { signal: client.signal })
        .then((answer) => answer.body?.cancel(), () => undefined),
  );
  await eventually("a search runs", () => Promise.resolve(state.running === 1));
  client.abort();
  await Promise.all(searches);
  await eventually("none runs", () => Promise.resolve(state.running === 0));
  const { begun } = state;
  state.gate.resolve();
  assert.equal((await cache.get("/explain?q=other")).status, 200);
  await eventually("no other search begins", () => Promise.resolve(state.begun === begun + 1));
});

Deno.test("expensive reads: a server that stops ends them, without their result", async () => {
  const { cache, state } = await heldCache();
  await using _cache = cache;
  const answers = ["one", "two"].map((name) => cache.get(`/explain?q=${name}`));
  await eventually("one runs", () => Promise.resolve(state.running === 1));
  cache.stopping();
  assert.deepEqual((await Promise.all(answers)).map(({ status }) => status), [503, 503]);
  await eventually("none runs", () => Promise.resolve(state.running === 0));
  for (const path of ["/explain?q=three", HASHES[0] ?? "", "/pins/closures"]) {
    assert.equal((await cache.get(path)).status, 503, path);
  }
});
