import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { Failure, STORAGE_AWAY } from "../../src/base/failure.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { testWhere } from "../support/program.ts";
import { NARS_ELSEWHERE } from "../support/shared_servers.ts";
import { chain, type StoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";
import { ALLOWED, push, pushOf, WRITE_TOKEN } from "../support/uploading.ts";

const DAY_MS = 24 * 3_600_000;
const objects = chain(4);
const root = objects.at(-1) as StoreObject;
const [leaf, second] = objects as [StoreObject, StoreObject];
const PIN = `/pin/${root.storePathHash}.narinfo`;
const narinfoOf = ({ storePathHash }: StoreObject) => `/${storePathHash}.narinfo`;

/** A larder with a pinned closure of four paths, and its clock. */
async function worldOf(query: string, options: Partial<TestCacheOptions> = {}) {
  const scope = new AsyncDisposableStack();
  const time = { nowMs: Date.now() };
  const upstream = scope.use(await fakeUpstream({ objects, stored: true }));
  const cache = scope.use(
    await TestCache.open({ upstreams: [upstream], nowMs: () => time.nowMs, ...options }),
  );
  await cache.narinfo(root.storePathHash);
  assert.equal((await cache.request("POST", `${PIN}${query}`)).status, 200);
  const shown = async () => {
    const [pin] = await cache.metadata.pins();
    const { look, keepComplete = false } = pin ?? {};
    const { missing, upstream, nowhere, paths } = look ?? {};
    return { keepComplete, paths, missing, upstream, nowhere };
  };
  const pull = async ({ storePathHash }: StoreObject) => {
    await (await cache.get(await cache.narPath(storePathHash))).bytes();
    await cache.downloadsOver();
  };
  const problems = async () => {
    const { problems } = await (await cache.get("/stats")).json();
    return problems.filter(({ message }: { message: string }) => /^pinned closure/.test(message));
  };
  const fileOf = async ({ storePathHash }: StoreObject) => {
    const row = await cache.metadata.findNarinfo(storePathHash);
    return cache.fileOf(row?.narName ?? "");
  };
  return {
    ...{ cache, upstream, time, shown, pull, problems, fileOf },
    /** The next look of the night. */
    async night() {
      time.nowMs += DAY_MS;
      await cache.lookAtPins();
    },
    [Symbol.asyncDispose]: () => scope.disposeAsync(),
  };
}

async function verified(cache: TestCache): Promise<string> {
  return await (await cache.request("POST", "/pins/verify")).text();
}

/** A path that is nowhere: as after a garbage collection of the upstream. */
function lose(upstream: FakeUpstream, gone: StoreObject): void {
  upstream.onRequest = ({ path }) =>
    path === narinfoOf(gone) || path.startsWith("/nar/")
      ? new Response(null, { status: 404 })
      : undefined;
}

const whole = { paths: 4, missing: 0, upstream: 0, nowhere: 0 };

Deno.test("pins: --keep-complete fetches the whole closure, and says that it is complete", async () => {
  await using world = await worldOf("?keep-complete=true");
  const { cache } = world;
  await eventually("all is here", async () => (await world.shown()).missing === 0);
  assert.deepEqual(await world.shown(), { keepComplete: true, ...whole });
  assert.equal((await cache.narNames()).length, 4);
  const [closure] = await (await cache.get("/pins/closures")).json();
  const { complete, keep_complete, missing } = closure;
  assert.deepEqual({ complete, keep_complete, missing }, {
    ...{ complete: true, keep_complete: true, missing: 0 },
  });
  assert.deepEqual(await (await cache.get("/pins")).json(), [root.storePathHash]);
});

Deno.test("pins: a look says what is missing and where it is, and stores nothing of it", async () => {
  await using world = await worldOf("");
  const { cache, upstream } = world;
  await world.pull(root);
  await cache.lookAtPins();
  const here = await world.shown();
  assert.deepEqual(here, { keepComplete: false, paths: 2, missing: 1, upstream: 1, nowhere: 0 });
  const { look } = (await cache.metadata.pins())[0] ?? {};
  assert.deepEqual(look?.examples, ["link-2"], "its narinfo is not here, and yet it has a name");
  assert.equal((await cache.narNames()).length, 1);
  const before = upstream.count(narinfoOf(objects[2] as StoreObject));

  await cache.lookAtPins();
  assert.equal(upstream.count(narinfoOf(objects[2] as StoreObject)), before, "once a night");
  lose(upstream, objects[2] as StoreObject);
  await world.night();
  assert.deepEqual(await world.shown(), { ...here, upstream: 0, nowhere: 1 });
  assert.deepEqual(await world.problems(), [], "it never was complete");
  upstream.onRequest = () => new Response(null, { status: 500 });
  await world.night();
  assert.deepEqual(await world.shown(), { ...here, upstream: 0, nowhere: 0 });
});

testWhere(
  NARS_ELSEWHERE,
  "pins: a complete pin that loses a file is a problem until it is whole again",
  async () => {
    await using world = await worldOf("");
    const { cache, upstream } = world;
    for (const object of objects) await world.pull(object);
    await cache.lookAtPins();
    assert.deepEqual(await world.shown(), { keepComplete: false, ...whole });
    const file = await world.fileOf(leaf);
    const bytes = Deno.readFileSync(file);
    Deno.removeSync(file);
    await cache.lookAtPins();
    assert.deepEqual(await world.problems(), [], "larder looks at night");

    await world.night();
    assert.deepEqual(await world.shown(), {
      keepComplete: false,
      ...whole,
      missing: 1,
      upstream: 1,
    });
    const [closure] = await (await cache.get("/pins/closures")).json();
    assert.deepEqual([closure.stored, closure.missing], [3, 1], "its row says that it is kept");
    const [problem, ...others] = await world.problems();
    assert.deepEqual(others, []);
    assert.equal(problem.over_at, null);
    const { name, paths, missing, hint } = problem.facts;
    assert.deepEqual([name, paths, missing], ["link-3", "link-0", 1]);
    assert.match(hint, new RegExp(`larder pin --keep-complete ${root.storePathHash}`));
    lose(upstream, leaf);
    await world.night();
    const [again] = await world.problems();
    assert.match(again.facts.hint, /no upstream has 1 of them: push them again/);

    Deno.writeFileSync(file, bytes);
    await world.night();
    const [ended] = await world.problems();
    assert.notEqual(ended.over_at, null);
    assert.deepEqual(await world.shown(), { keepComplete: false, ...whole });
  },
);

testWhere(NARS_ELSEWHERE, "pins: a pin that is kept complete gets a lost file back", async () => {
  await using world = await worldOf("?keep-complete=true");
  const { cache, upstream } = world;
  await eventually("all is here", async () => (await world.shown()).missing === 0);
  Deno.removeSync(await world.fileOf(second));
  upstream.onRequest = () => new Response(null, { status: 503 });
  await world.night();
  assert.equal((await world.shown()).missing, 1);
  assert.equal((await world.problems())[0].over_at, null);

  upstream.onRequest = undefined;
  world.time.nowMs += 11 * 60_000;
  await cache.lookAtPins();
  assert.deepEqual(await world.shown(), { keepComplete: true, ...whole });
  assert.notEqual((await world.problems())[0].over_at, null);
  assert.ok(Deno.statSync(await world.fileOf(second)).isFile);
});

testWhere(
  NARS_ELSEWHERE,
  "pins: a lost file that an explanation finds is a problem of its pin within seconds",
  async () => {
    await using world = await worldOf("");
    const { cache } = world;
    for (const object of objects) await world.pull(object);
    await cache.lookAtPins();
    assert.equal((await world.shown()).missing, 0);
    Deno.removeSync(await world.fileOf(leaf));
    await (await cache.get(`/explain?path=${leaf.storePathHash}`)).text();
    await eventually("it is incomplete", async () => (await world.shown()).missing === 1);
    await eventually("it is a problem", async () => (await world.problems()).length === 1);
    assert.equal((await world.problems())[0].over_at, null);
  },
);

testWhere(
  NARS_ELSEWHERE,
  "pins: a lost file that an explanation finds is fetched at once for a pin that stays complete",
  async () => {
    await using world = await worldOf("?keep-complete=true");
    const { cache } = world;
    await eventually("all is here", async () => (await world.shown()).missing === 0);
    const file = await world.fileOf(leaf);
    Deno.removeSync(file);
    await (await cache.get(`/explain?path=${leaf.storePathHash}`)).text();
    await eventually("it was a problem", async () => (await world.problems()).length === 1);
    await eventually("it is here again", async () => (await world.shown()).missing === 0);
    assert.ok(Deno.statSync(await world.fileOf(leaf)).isFile);
    await eventually("it is over", async () => (await world.problems())[0].over_at !== null);
  },
);

testWhere(
  NARS_ELSEWHERE,
  "pins: a pin of which a count misses a path is complete nowhere, and is looked at at once",
  async () => {
    await using world = await worldOf("");
    const { cache } = world;
    for (const object of objects) await world.pull(object);
    await cache.lookAtPins();
    assert.deepEqual(await world.shown(), { keepComplete: false, ...whole });
    // As `larder fsck --repair` of another process.
    const row = await cache.metadata.findNarinfo(leaf.storePathHash);
    const { kept } = await cache.metadata.findNar(row?.narName ?? ("" as never)) ?? {};
    assert.ok(kept);
    Deno.removeSync(await world.fileOf(leaf));
    const mark = { kind: "nar-marked", at: kept.at, owner: "test", isLost: true } as const;
    await cache.metadata.apply([mark]);
    const [closure] = await (await cache.get("/pins/closures")).json();
    assert.deepEqual([closure.stored, closure.missing, closure.complete], [3, 1, false]);
    await eventually("it is looked at", async () => (await world.shown()).missing === 1);
    await eventually("it is a problem", async () => (await world.problems()).length === 1);
  },
);

testWhere(
  NARS_ELSEWHERE,
  "pins: a lost file that a client fetches again makes its pin complete within seconds",
  async () => {
    await using world = await worldOf("");
    const { cache, upstream } = world;
    for (const object of objects) await world.pull(object);
    await cache.lookAtPins();
    Deno.removeSync(await world.fileOf(leaf));
    await verified(cache);
    assert.equal((await world.problems())[0].over_at, null);
    const faults = async () => {
      const { verdict } = await (await cache.get("/stats")).json();
      return verdict.faults.filter(({ text }: { text: string }) => /pin/i.test(text)).length;
    };
    assert.equal(await faults(), 1);

    await world.pull(leaf);
    const questions = upstream.count(/\.narinfo$/);
    await eventually("it is complete", async () => (await world.shown()).missing === 0);
    await eventually("it is over", async () => (await world.problems())[0].over_at !== null);
    assert.equal(upstream.count(/\.narinfo$/), questions, "nobody is asked for that");
    assert.equal(await faults(), 0);
  },
);

testWhere(
  NARS_ELSEWHERE,
  "pins: a lost file that is pushed, or comes back with its disk, makes its pin complete, too",
  async () => {
    await using world = await worldOf("", { uploads: ALLOWED, tokens: [WRITE_TOKEN] });
    const { cache, upstream } = world;
    for (const object of objects) await world.pull(object);
    lose(upstream, leaf);
    for (
      const comesBack of [
        async () => void await push(cache, await pushOf(leaf)),
        async (file: string, bytes: Bytes) => {
          Deno.writeFileSync(file, bytes);
          await world.pull(leaf);
        },
      ]
    ) {
      const file = await world.fileOf(leaf);
      const bytes = Deno.readFileSync(file);
      Deno.removeSync(file);
      await verified(cache);
      assert.deepEqual((await world.shown()).nowhere, 1);
      await comesBack(file, bytes);
      await eventually("it is complete", async () => (await world.shown()).missing === 0);
    }
  },
);

testWhere(
  NARS_ELSEWHERE,
  "pins: at once after a verification the sizes leave out what is lost",
  async () => {
    await using world = await worldOf("");
    const { cache } = world;
    for (const object of objects) await world.pull(object);
    await cache.request("POST", `/pin/${second.storePathHash}.narinfo`);
    const together = async () => {
      const { size } = await (await cache.get("/stats")).json();
      const metrics = await (await cache.get("/metrics")).text();
      const [, gauge] = /^larder_pinned_bytes (\d+)$/m.exec(metrics) ?? [];
      return [size.pinned_bytes, Number(gauge)];
    };
    const figuresOf = ({ stored, missing, bytes, own_bytes }: Record<string, number>) => (
      { stored, missing, bytes, own_bytes }
    );
    // The page has the newest pin first.
    const shown = async () =>
      (await (await cache.get("/stats")).json()).pins.roots.toReversed().map(figuresOf);
    const sizes = async () => {
      const listed = (await (await cache.get("/pins/closures")).json()).map(figuresOf);
      const text = JSON.stringify(listed);
      await eventually("they are counted", async () => JSON.stringify(await shown()) === text);
      return listed;
    };
    const sizeOf = async (object: StoreObject) => Deno.statSync(await world.fileOf(object)).size;
    const [leafBytes, rootBytes] = [await sizeOf(leaf), await sizeOf(root)];
    const [first, other] = await sizes();
    assert.deepEqual([first.stored, first.missing, other.stored], [4, 0, 2]);
    // The one reaches what the other does.
    await eventually(
      "all is pinned",
      async () => (await together()).every((one) => one === first.bytes),
    );

    Deno.removeSync(await world.fileOf(leaf));
    Deno.removeSync(await world.fileOf(root));
    await verified(cache);
    const missing = (await shown()).map((one: { readonly missing: number }) => one.missing);
    assert.deepEqual(missing, [2, 1], "at once");
    const left = first.bytes - leafBytes - rootBytes;
    assert.deepEqual(await together(), [left, left], "so does the sum, and the metric");
    assert.deepEqual(await sizes(), [
      {
        ...{ stored: 2, missing: 2, bytes: first.bytes - leafBytes - rootBytes },
        own_bytes: first.own_bytes - rootBytes,
      },
      { stored: 1, missing: 1, bytes: other.bytes - leafBytes, own_bytes: 0 },
    ]);
    const page = await (await cache.get("/", { accept: "text/html" })).text();
    assert.match(page, /2 paths here, 2 missing, pinned/);
    assert.match(page, /Incomplete: 2 paths missing \(2 upstream still has\)/);
    assert.doesNotMatch(page, /for the first time/);
  },
);

testWhere(NARS_ELSEWHERE, "pins: an unpinned closure is no problem any more", async () => {
  await using world = await worldOf("");
  for (const object of objects) await world.pull(object);
  await world.cache.lookAtPins();
  Deno.removeSync(await world.fileOf(leaf));
  await world.night();
  assert.equal((await world.problems())[0].over_at, null);
  await world.cache.request("DELETE", PIN);
  await eventually("it is over", async () => (await world.problems())[0].over_at !== null);
});

testWhere(
  NARS_ELSEWHERE,
  "pins: a verification reads the files, and finds a changed one",
  async () => {
    await using world = await worldOf("");
    const { cache, upstream } = world;
    for (const object of objects) await world.pull(object);
    const events = async () => {
      const answer = await cache.request("POST", "/pins/verify");
      assert.equal(answer.headers.get("content-type"), "application/x-ndjson");
      const lines = (await answer.text()).trim().split("\n").map((line) => JSON.parse(line));
      return lines.filter(({ event }) => event !== "progress");
    };
    const [pin, done] = await events();
    assert.deepEqual([pin.name, pin.complete, pin.look.paths], ["link-3", true, 4]);
    const { pins, complete, damaged, paths, bytes } = done;
    assert.deepEqual({ pins, complete, damaged, paths }, {
      pins: 1,
      complete: 1,
      damaged: 0,
      paths: 4,
    });
    assert.equal(bytes, cache.bytesOnDisk());

    // Even its times say nothing of the change: only the bytes do.
    const file = await world.fileOf(leaf);
    const { mtime, atime } = Deno.statSync(file);
    const spoilt = Deno.readFileSync(file).map((byte) => byte ^ 1);
    Deno.writeFileSync(file, spoilt);
    Deno.utimeSync(file, atime as Date, mtime as Date);
    lose(upstream, leaf);
    const [short, over] = await events();
    assert.deepEqual([short.complete, short.look.missing, short.look.nowhere], [false, 1, 1]);
    assert.deepEqual(short.look.examples, ["link-0"]);
    assert.deepEqual([over.complete, over.damaged], [0, 1]);
    assert.equal((await world.problems())[0].over_at, null);
  },
);

/** A verification that counts one damaged file, and the next one none. */
async function countsOnce(spoil: (bytes: Bytes) => Bytes): Promise<void> {
  await using world = await worldOf("?keep-complete=true");
  const { cache } = world;
  await eventually("all is here", async () => (await world.shown()).missing === 0);
  const file = await world.fileOf(leaf);
  Deno.writeFileSync(file, spoil(Deno.readFileSync(file)));
  for (const expected of [1, 0]) {
    const lines = (await verified(cache)).trim().split("\n");
    const { complete, damaged } = JSON.parse(lines.at(-1) ?? "");
    assert.deepEqual({ complete, damaged }, { complete: 1, damaged: expected });
  }
}

testWhere(
  NARS_ELSEWHERE,
  "pins: a verification counts a changed file that is fetched again at once",
  () => countsOnce((bytes) => bytes.map((byte) => byte ^ 1)),
);

testWhere(
  NARS_ELSEWHERE,
  "pins: a verification counts a cut file that is fetched again at once",
  () => countsOnce((bytes) => bytes.subarray(1)),
);

Deno.test("pins: a bad keep-complete is a sentence, and pins nothing", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (const bad of ["", "1", "yes", "true%0a"]) {
    const answer = await cache.request("POST", `${PIN}?keep-complete=${bad}`);
    assert.deepEqual([answer.status, await answer.text()], [
      400,
      "Bad Request: expected keep-complete true or false\n",
    ]);
  }
  assert.equal((await cache.request("POST", `${PIN}?keep-complete=true`)).status, 404);
  assert.deepEqual(await (await cache.get("/pins")).json(), []);
});

Deno.test("pins: a second verification is refused while one runs", async () => {
  await using world = await worldOf("");
  const first = await world.cache.request("POST", "/pins/verify");
  const second = await world.cache.request("POST", "/pins/verify");
  assert.equal(second.status, 503);
  await first.text();
  assert.equal((await world.cache.request("POST", "/pins/verify")).status, 200);
});

Deno.test("pins: a verification without the storage says 503 and why, not that it is absent", async () => {
  await using world = await worldOf("");
  const { cache } = world;
  for (const object of objects) await world.pull(object);
  const { nars } = cache;
  const open = nars.open.bind(nars);
  const part = { part: "storage" };
  nars.open = () => Promise.reject(new Failure("unavailable", "Cannot open NAR file", part));
  const answer = await cache.request("POST", "/pins/verify");
  const told = [answer.status, await answer.text(), answer.headers.get("retry-after")];
  assert.deepEqual(told, [503, `${STORAGE_AWAY}\n`, "5"]);
  const id = answer.headers.get("x-request-id");
  const line = cache.log.find(({ msg, request_id }) => msg === "request" && request_id === id);
  assert.deepEqual([line?.["part"], line?.["error"]], ["storage", "Cannot open NAR file"]);
  const nar = await cache.get(await cache.narPath(leaf.storePathHash));
  assert.equal(nar.status, 200, "a client has it from the upstream");
  await nar.bytes();
  nars.open = open;
  assert.equal((await cache.request("POST", "/pins/verify")).status, 200);
});
