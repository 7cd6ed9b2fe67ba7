import assert from "node:assert/strict";
import { Failure, STORAGE_AWAY } from "../../../src/base/failure.ts";
import { completenessWord } from "../../../src/cli/client/pinned_closures.ts";
import { clock } from "../../../src/runtime/current.ts";
import { eventually } from "../../support/eventually.ts";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { runLarder } from "../../support/run_larder.ts";
import { chain, type StoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const objects = chain(2);
const root = objects.at(-1) as StoreObject;
const ROOT = "0".repeat(32);

Deno.test("larder verify: complete pins are status 0, a missing path is 1 with its name", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const env = { LARDER_SERVER: server.url };
  const verify = (...words: readonly string[]) =>
    runLarder(["verify", "--pins", ...words], { env });
  assert.deepEqual(await verify(), { status: 0, out: "nothing is pinned\n", err: "" });

  const pull = async ({ storePathHash }: StoreObject) => {
    await (await cache.get(await cache.narPath(storePathHash))).bytes();
    await cache.downloadsOver();
  };
  await pull(root);
  const pinned = await runLarder(["pin", root.storePath], { env });
  assert.deepEqual([pinned.status, pinned.err], [0, ""]);
  const short = await verify();
  assert.equal(short.status, 1, short.out + short.err);
  const [first, second, third] = short.out.split("\n");
  assert.deepEqual([first, second], [
    "link-1: 1 path missing (1 upstream still has):",
    "  link-0",
  ]);
  assert.match(third ?? "", /^0 of 1 pin complete, [\d.]+ [KM]?i?B read\.$/);
  assert.match(
    short.err,
    /^larder: not every pin is complete; larder pin --keep-complete [^\n]+\n$/,
  );
  const told = await runLarder(["pins"], { env });
  assert.match(told.out, /link-1 +1 +1 missing /);
  assert.match(told.out, /\nlink-1: 1 path missing \(1 upstream still has\):\n {2}link-0\n$/);

  const kept = await runLarder(["pin", "--keep-complete", root.storePath], { env });
  assert.deepEqual([kept.status, kept.err], [0, ""]);
  assert.match(kept.out, /^pinned \S+, and the server keeps its closure complete\n$/);
  const whole = await verify();
  assert.deepEqual([whole.status, whole.err], [0, ""]);
  assert.match(whole.out, /^link-1: complete and kept so, 2 paths\n1 of 1 pin complete, /);
  const json = JSON.parse((await verify("--json")).out);
  const { pins: [pin], complete, damaged } = json;
  assert.deepEqual([pin.root, pin.complete, complete, damaged], [root.storePathHash, true, 1, 0]);
});

Deno.test("larder verify: a storage that is lost behind the first line is named", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const env = { LARDER_SERVER: server.url };
  await (await cache.get(await cache.narPath(root.storePathHash))).bytes();
  await cache.downloadsOver();
  assert.equal((await runLarder(["pin", root.storePath], { env })).status, 0);
  const begun = Promise.withResolvers<void>();
  cache.nars.open = async () => {
    await begun.promise;
    throw new Failure("unavailable", "Cannot open NAR file: timeout", { part: "storage" });
  };
  const answer = await fetch(`${server.url}/pins/verify`, { method: "POST" });
  assert.equal(answer.status, 200, "a line of progress comes first");
  begun.resolve();
  let text = "";
  await assert.rejects(async () => {
    const decoder = new TextDecoder();
    for await (const piece of answer.body ?? []) text += decoder.decode(piece);
  });
  const last = { event: "failed", part: "storage", reason: STORAGE_AWAY };
  assert.deepEqual(JSON.parse(text.trimEnd().split("\n").at(-1) ?? ""), last);
  const id = answer.headers.get("x-request-id");
  const line = () =>
    cache.log.find(({ msg, request_id }) => msg === "request" && request_id === id);
  await eventually("the request has its line", () => line() !== undefined);
  assert.deepEqual([line()?.["part"], line()?.["error"]], [
    "storage",
    "Cannot open NAR file: timeout",
  ]);
  // A frozen storage takes a second or more for each try.
  cache.nars.open = async () => {
    await clock.pause(1_500);
    throw new Failure("unavailable", "Cannot open NAR file: timeout", { part: "storage" });
  };
  assert.deepEqual(await runLarder(["verify", "--pins"], { env }), {
    status: 1,
    out: "",
    err: "larder: the run ended early: the storage does not answer; try again in a moment\n",
  });
});

Deno.test("larder verify: bad words get a sentence, and nothing is sent", async () => {
  const env = { LARDER_SERVER: "http://127.0.0.1:1" };
  for (
    const [words, expected] of [
      [[], /^larder: expected --pins, [^\n]+\n$/],
      [["--pins", "x"], /^larder: [^\n]*"?x"?[^\n]*\n/],
      [["--pins=perhaps"], /^larder: [^\n]*perhaps[^\n]*\n/],
    ] as const
  ) {
    const { status, out, err } = await runLarder(["verify", ...words], { env });
    assert.deepEqual([status, out], [2, ""]);
    assert.match(err, expected);
  }
});

Deno.test("larder verify: what is not larder's form is not shown", async () => {
  const pin = { event: "pin", root: ROOT, name: "a-1", keep_complete: false, complete: true };
  const look = { at: "2026-01-02T03:04:05.000Z", paths: 1, missing: 1, upstream: 0, nowhere: 1 };
  for (
    const line of [
      "no json",
      JSON.stringify({ event: "progress" }),
      JSON.stringify({ ...pin, name: "\u001b[2J" }),
      JSON.stringify({ ...pin, look: { ...look, examples: ["\u001b[2J"] } }),
      JSON.stringify({ ...pin, look: { ...look, examples: [], missing: "1" } }),
    ]
  ) {
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    await using server = Deno.serve(options, () => new Response(`${line}\n`));
    const url = `http://127.0.0.1:${server.addr.port}`;
    const { status, out, err } = await runLarder(["verify", "--pins", "--server", url]);
    assert.deepEqual([status, out], [1, ""]);
    assert.equal(err, "larder: Cannot read the run's progress: is the server larder?\n");
  }
});

Deno.test("larder pins: what is not counted yet says so", () => {
  assert.equal(completenessWord({}), "counting");
  assert.equal(completenessWord({ complete: null, look: null }), "counting");
});

Deno.test("larder pins: the table fits 100 columns, whatever the pins are", async () => {
  const look = { at: "2026-01-02T03:04:05.000Z", paths: 9_999, missing: 1_234, upstream: 1_200 };
  const pin = {
    ...{ root: ROOT, name: "a".repeat(211), stored: 99_999, missing: 1_234, bytes: 999.9e9 },
    ...{ own_bytes: 999.9e9, pinned_at: "2026-01-02T03:04:05.000Z", keep_complete: true },
    ...{ complete: false, look: { ...look, nowhere: 30, examples: ["glibc-2.40", "bash-5.2"] } },
  };
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  const answer = [pin, { ...pin, name: "b-1", missing: 0, complete: true, look: null }];
  await using server = Deno.serve(options, () => Response.json(answer));
  const url = `http://127.0.0.1:${server.addr.port}`;
  const { status, out } = await runLarder(["pins", "--server", url], { columns: 100 });
  assert.equal(status, 0);
  const table = out.split("\n");
  assert.deepEqual(table.filter((line) => line.length > 100), []);
  assert.match(table[1] ?? "", / 1234 missing /);
  assert.match(table[2] ?? "", /b-1 .* kept /);
});
