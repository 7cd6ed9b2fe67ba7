import assert from "node:assert/strict";
import { CANNOT_NOW, DATABASE_AWAY, Failure, STORAGE_AWAY } from "../../src/base/failure.ts";
import { snakeNames } from "../../src/base/snake_names.ts";
import { gcRoute } from "../../src/http/routes/gc.ts";
import type { GcEvent, GcOrder, GcProgress } from "../../src/space/gc_event.ts";
import { GC_DONE, GcServer } from "../support/gc_server.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { TestCache } from "../support/test_cache.ts";
import { PlayedTime } from "../support/played_time.ts";

const PROGRESS: GcProgress = {
  event: "progress",
  freedBytes: 1,
  evictedEntries: 1,
  usedBytes: 9,
};

async function* of(...events: readonly GcEvent[]): AsyncGenerator<GcEvent> {
  yield* events;
}

async function linesOf(response: Response): Promise<GcEvent[]> {
  return (await response.text()).trimEnd().split("\n").map((line) => JSON.parse(line));
}

Deno.test("gc: a response reports a run line by line, and ends with its result", async () => {
  await using server = new GcServer(() => of(PROGRESS, GC_DONE));

  const answer = await fetch(`${server.url}/gc`, { method: "POST" });

  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "application/x-ndjson");
  assert.match(answer.headers.get("cache-control") ?? "", /no-store/);
  assert.deepEqual(await linesOf(answer), [PROGRESS, GC_DONE].map(snakeNames));
});

Deno.test("gc: however often a run tells, a client hears of it once a second", async () => {
  const busy = Array.from({ length: 10_000 }, () => PROGRESS);
  await using server = new GcServer(() => of(...busy, GC_DONE));

  const lines = await linesOf(await fetch(`${server.url}/gc`, { method: "POST" }));

  assert.ok(lines.length <= 3, `${lines.length} lines`);
  assert.deepEqual(lines.at(-1), snakeNames(GC_DONE));
});

Deno.test("gc: a client hears of a run of ten seconds once a second", async () => {
  using time = new PlayedTime();
  async function* run(): AsyncGenerator<GcEvent> {
    for (let count = 0; count <= 40; count++) {
      yield PROGRESS;
      // The client takes a line before the next event comes.
      await time.advance(250);
    }
    yield GC_DONE;
  }
  const routed = {
    requestId: "",
    head: false,
    params: [],
    caller: undefined,
    mayManage: () => Promise.resolve(true),
  };
  const request = new Request("http://cache.test/gc", { method: "POST" });
  const answer = await gcRoute({ gc: run }).methods.POST?.({ ...routed, request });
  assert.ok(answer?.body instanceof ReadableStream);
  const text = await new Response(answer.body).text();

  const events = text.trimEnd().split("\n").map((line) => JSON.parse(line).event);
  assert.deepEqual(events, [...Array(11).fill("progress"), "done"]);
});

Deno.test("gc: target and dry run reach the engine as they were given", async () => {
  const orders: GcOrder[] = [];
  await using server = new GcServer((order) => {
    orders.push(order);
    return of(GC_DONE);
  });

  for (
    const query of ["", "?target=0", "?dry-run=true&target=9007199254740991", "?dry-run=false"]
  ) {
    await (await fetch(`${server.url}/gc${query}`, { method: "POST" })).body?.cancel();
  }

  assert.deepEqual(orders, [
    { dryRun: false },
    { dryRun: false, targetBytes: 0 },
    { dryRun: true, targetBytes: 9007199254740991 },
    { dryRun: false },
  ]);
});

Deno.test("gc: a bad, unknown or repeated parameter is 400 and starts nothing", async () => {
  let runs = 0;
  await using server = new GcServer(() => {
    runs++;
    return of(GC_DONE);
  });

  for (
    const query of [
      "target=",
      "target=10G",
      "target=-1",
      "target=1.5",
      "target=9007199254740992",
      "target=1&target=1",
      "dry-run",
      "dry-run=yes",
      "dryRun=true",
      "verbose=1",
    ]
  ) {
    const answer = await fetch(`${server.url}/gc?${query}`, { method: "POST" });
    assert.equal(answer.status, 400, query);
    assert.match(await answer.text(), /^Bad Request: .*expected [ -~]+\n$/);
  }
  assert.equal(runs, 0);
});

Deno.test("gc: with nothing to aim at it is 400, and another method is 405", async () => {
  await using server = new GcServer(() => undefined);

  for (const [method, status] of [["POST", 400], ["GET", 405], ["HEAD", 405]] as const) {
    const answer = await fetch(`${server.url}/gc`, { method });
    await answer.body?.cancel();
    assert.equal(answer.status, status);
    if (status === 405) assert.equal(answer.headers.get("allow"), "POST");
  }
});

const AWAY = new Failure("away", "Cannot use the database: ECONNREFUSED");
const SILENT = new Failure("unavailable", "Cannot remove /srv/x", { part: "storage" });

for (
  const [what, error, part, reason] of [
    ["the database", AWAY, "database", DATABASE_AWAY],
    ["the storage", SILENT, "storage", STORAGE_AWAY],
    ["something else", new Error("the disk is gone"), null, CANNOT_NOW],
  ] as const
) {
  Deno.test(`gc: a run that loses ${what} says so in its last line, and breaks`, async () => {
    await using server = new GcServer(async function* () {
      yield PROGRESS;
      await Promise.resolve();
      throw error;
    });
    const { body, complete } = await rawRequest(server.port, requestText("POST", "/gc"));
    const lines = new TextDecoder().decode(body).trimEnd().split("\n");
    const failed = { event: "failed", part, reason };
    assert.deepEqual(lines.map((line) => JSON.parse(line)), [snakeNames(PROGRESS), failed]);
    assert.equal(complete, false);
    await assert.rejects(async () =>
      await (await fetch(`${server.url}/gc`, { method: "POST" })).text()
    );
  });
}

Deno.test("gc: a client that goes away ends the run at its next step", async () => {
  const ended = Promise.withResolvers<string>();
  const gone = Promise.withResolvers<void>();
  await using server = new GcServer(async function* () {
    let steps = 0;
    try {
      yield PROGRESS;
      await gone.promise;
      for (; steps < 1_000; steps++) {
        yield PROGRESS;
        await new Promise((resolve) => setTimeout(resolve));
      }
    } finally {
      ended.resolve(steps < 1_000 ? "stopped" : "went on");
    }
  });

  const answer = await fetch(`${server.url}/gc`, { method: "POST" });
  await answer.body?.cancel();
  gone.resolve();

  assert.equal(await ended.promise, "stopped");
});

Deno.test("gc: a client that takes nothing does not hold the run", async () => {
  const over = Promise.withResolvers<void>();
  await using server = new GcServer(async function* () {
    for (let step = 0; step < 100_000; step++) yield PROGRESS;
    over.resolve();
    yield GC_DONE;
  });

  const answer = await fetch(`${server.url}/gc`, { method: "POST" });
  await over.promise;

  assert.deepEqual((await linesOf(answer)).at(-1), snakeNames(GC_DONE));
});

Deno.test("gc: the bytes of a file that was gone before are not freed", async () => {
  const objects = [1, 2].map((seed) => makeStoreObject({ name: "thing", size: 5_000, seed }));
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const names = [];
  for (const { storePathHash } of objects) {
    const path = await cache.narPath(storePathHash);
    await (await cache.get(path)).bytes();
    names.push(path.slice("/nar/".length));
  }
  await cache.downloadsOver();
  const [lost = "", stays = ""] = names;
  const fileSize = Deno.statSync(cache.fileOf(stays)).size;
  Deno.removeSync(cache.fileOf(lost));

  const answer = await cache.request("POST", "/gc?target=0");

  const lines = (await answer.text()).trim().split("\n");
  const { freed_bytes, evicted_entries, evicted_files, used_bytes } = JSON.parse(
    lines.at(-1) ?? "",
  );
  assert.deepEqual([freed_bytes, evicted_entries, evicted_files, used_bytes], [fileSize, 2, 1, 0]);
});
