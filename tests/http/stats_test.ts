import assert from "node:assert/strict";
import type { Stats } from "../../src/http/stats/stats.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate } from "../support/faults.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { scrape } from "../support/scrape.ts";
import { chain, makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { AS_WRITER, pushOf, uploadCache } from "../support/uploading.ts";

const object = makeStoreObject({ name: "big-1.0", size: 4_000_000 });
const HASH = object.storePathHash;
const ABSENT = "0".repeat(32);
const ISO_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function statsOf(cache: TestCache, path = "/stats"): Promise<Stats> {
  const answer = await cache.get(path);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(answer.headers.get("cache-control"), "no-store, no-transform");
  return await answer.json();
}

Deno.test("stats: hits, misses and what they saved are those of the answers", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 9_000_000 });
  const before = await statsOf(cache);
  assert.deepEqual(before.requests.nar, {
    hits: 0,
    misses: 0,
    joined: 0,
    prefetched: 0,
    absent: 0,
    hitRatio: null,
  });
  assert.deepEqual(before.traffic, { servedBytes: 0, upstreamBytes: 0, savedBytes: 0 });
  assert.deepEqual(before.upstreams, [
    { url: upstream.url, isUp: true, priority: null, lastAnswer: null },
  ]);

  const path = await cache.narPath(HASH);
  const { length } = await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  for (let count = 0; count < 3; count++) await (await cache.get(path)).bytes();
  await cache.get(`/${ABSENT}.narinfo`);
  await cache.get(`/${ABSENT}.narinfo`);

  const after = await statsOf(cache);
  assert.deepEqual(after.requests.nar, {
    hits: 3,
    misses: 1,
    joined: 0,
    prefetched: 0,
    absent: 0,
    hitRatio: 0.75,
  });
  assert.deepEqual(after.requests.narinfo, {
    hits: 0,
    misses: 2,
    joined: 0,
    prefetched: 0,
    absent: 1,
    hitRatio: 0,
  });
  assert.equal(after.traffic.savedBytes, 3 * length);
  assert.equal(after.traffic.upstreamBytes, length);
  assert.deepEqual(after.size, {
    usedBytes: length,
    reservedBytes: 0,
    pinnedBytes: 0,
    limitBytes: 9_000_000,
    evictedBytes: 0,
    evictedEntries: 0,
  });
  const [asked] = after.upstreams;
  assert.deepEqual([asked?.isUp, asked?.priority, asked?.lastAnswer?.result], [true, 40, "absent"]);
  assert.match(asked?.lastAnswer?.at ?? "", ISO_REGEXP);
  assert.equal(after.publicKey, cache.secretKey.publicKey.text);
});

Deno.test("stats: a download shows its name and how far it is, until it is over", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, upstream, cache, path } = scene;
  gate.release(1_000_000);
  const answer = await cache.get(path);
  let download: Stats["downloads"]["underWay"][number] | undefined;
  await eventually("the first million is here", async () => {
    download = (await statsOf(cache)).downloads.underWay[0];
    return download?.receivedBytes === 1_000_000;
  });
  const { startedAt = "", ...rest } = download ?? {};
  const fileBytes = (await upstream.narFileOf(object)).bytes.length;
  assert.deepEqual(rest, {
    nar: path.slice("/nar/".length),
    name: "big-1.0",
    state: "receiving",
    receivedBytes: 1_000_000,
    fileBytes,
    clientCount: 1,
    clients: ["127.0.0.1"],
  });
  assert.match(startedAt, ISO_REGEXP);

  gate.open();
  await answer.bytes();
  await cache.downloadsOver();
  assert.deepEqual((await statsOf(cache)).downloads, { count: 0, underWay: [] });
});

Deno.test("stats: a pass-through is in flight once for each client", async () => {
  await using scene = await GatedNar.open(object, { limitBytes: 1_000 });
  const { gate, upstream, cache, path } = scene;
  const fileBytes = (await upstream.narFileOf(object)).bytes.length;
  const inFlight = async () => (await scrape(cache)).value("larder_in_flight_downloads");
  gate.release(1_000_000);
  const answers = [await cache.get(path), await cache.get(path)];
  const bodies = answers.map((answer) => answer.bytes());
  let underWay: Stats["downloads"]["underWay"] = [];
  await eventually("the first million is there", async () => {
    underWay = (await statsOf(cache)).downloads.underWay;
    return underWay.length === 2 && underWay.every((one) => one.receivedBytes === 1_000_000);
  });
  for (const { nar, name, state, fileBytes: announced } of underWay) {
    const shown = [path.slice("/nar/".length), "big-1.0", "receiving", fileBytes];
    assert.deepEqual([nar, name, state, announced], shown);
  }
  assert.deepEqual([(await statsOf(cache)).downloads.count, await inFlight()], [2, 2]);

  gate.open();
  for (const body of bodies) assert.equal((await body).length, fileBytes);
  assert.deepEqual((await statsOf(cache)).downloads, { count: 0, underWay: [] });
  assert.equal(await inFlight(), 0);
});

Deno.test("stats: pins are there at once, and what they hold soon after", async () => {
  const objects = chain(2);
  const [leaf, root] = objects;
  assert.ok(leaf && root);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  for (const { storePathHash } of objects) {
    await (await cache.get(await cache.narPath(storePathHash))).bytes();
  }
  await cache.downloadsOver();
  await cache.request("POST", `/pin/${root.storePathHash}.narinfo`);

  const first = (await statsOf(cache)).pins;
  assert.equal(first?.count, 1);
  assert.deepEqual(
    first?.roots.map(({ root, name, stored }) => ({ root, name, stored })),
    [{ root: root.storePathHash, name: "link-1", stored: null }],
  );
  await eventually("the closure is counted", async () => {
    return (await statsOf(cache)).pins?.countedAt !== null;
  });
  const counted = (await statsOf(cache)).pins?.roots[0];
  assert.deepEqual([counted?.stored, counted?.missing], [2, 0]);

  await cache.request("DELETE", `/pin/${root.storePathHash}.narinfo`);
  assert.deepEqual((await statsOf(cache)).pins?.roots, []);
});

Deno.test("stats: problems are told without anything of our machine", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  Deno.removeSync(cache.tempPath, { recursive: true });
  await (await cache.get(path)).bytes();
  const message = "nars cannot be kept: they pass through";
  const line = cache.logged("error").find(({ msg }) => msg === message);
  assert.match(String(line?.detail), /No such file/, "the log has it all");

  const answer = await (await cache.get("/stats")).text();
  const [problem] = (JSON.parse(answer) as Stats).problems;
  const { firstAt, lastAt, ...rest } = problem ?? {};
  const facts = { nar: path.slice("/nar/".length) };
  assert.deepEqual(rest, { level: "error", message, facts, count: 1 });
  assert.match(`${firstAt} ${lastAt}`, /Z .*Z$/);
  const page = await (await cache.get("/", { accept: "text/html" })).text();
  for (const text of [answer, page]) {
    assert.doesNotMatch(text, new RegExp(cache.folder.path));
    assert.doesNotMatch(text, /\.ts:\d|os error|\.part/);
  }
});

Deno.test("stats: every field is documented, and every documented field is there", async () => {
  const gate = new Gate();
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(gate.fault);
  const upstreams = [upstream, "http://127.0.0.1:1"];
  await using cache = await uploadCache({ upstreams });
  const path = await cache.narPath(HASH);
  gate.release(1_000);
  const answer = await cache.get(path);
  await cache.request("POST", `/pin/${HASH}.narinfo`);
  const body = new TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>();
  const pushed = await pushOf(makeStoreObject({ name: "pushed-1.0" }));
  const putting = cache.put(pushed.narPath, body.readable, AS_WRITER);
  await eventually("the upload comes in", async () => (await statsOf(cache)).uploads.count === 1);
  const stats = await statsOf(cache);
  await body.writable.close();
  await (await putting).text();
  gate.open();
  await answer.bytes();
  await cache.downloadsOver();

  const table = Deno.readTextFileSync("docs/stats.md").split("\n").filter((line) => {
    return line.startsWith("| `");
  });
  const documented = table.flatMap((line) => {
    return [...line.split(" | ", 1)[0]?.matchAll(/`([^`]+)`/g) ?? []].map(([, name]) => name);
  });
  assert.deepEqual([...fieldsOf(stats)].sort(), documented.sort());
});

/** The names of all fields, as the documentation writes them. */
function fieldsOf(value: unknown, at = ""): ReadonlySet<string> {
  if (at === "problems[].facts") return new Set();
  if (Array.isArray(value)) {
    assert.notEqual(value.length, 0, `${at} has something in it`);
    const within = value.flatMap((one) => [...fieldsOf(one, `${at}[]`)]);
    return new Set([`${at}[]`, ...within]);
  }
  if (value === null || typeof value !== "object") return new Set();
  return new Set(
    Object.entries(value).flatMap(([name, inner]) => {
      const path = at === "" ? name : `${at}.${name}`;
      // Both kinds of requests have the same fields.
      const within = fieldsOf(inner, path.replace(/^(requests|prefetch)\.\w+$/, "$1.*"));
      const isGroup = Array.isArray(inner) || GROUPS.includes(path);
      return [...isGroup ? [] : [path], ...within];
    }),
  );
}

/** Objects without a meaning of their own. */
const GROUPS = ["requests", "prefetch", "traffic", "size", "downloads", "uploads"];

Deno.test("stats: a broken database takes the pins away, and leaves the rest", async () => {
  await using cache = await TestCache.open({ upstreams: ["http://127.0.0.1:1"] });
  await cache.metadata[Symbol.asyncDispose]();
  const { pins, size, upstreams } = await statsOf(cache);
  assert.deepEqual([pins, size.usedBytes, upstreams.length], [null, 0, 1]);
  const page = await (await cache.get("/", { accept: "text/html" })).text();
  assert.match(page, /The pins cannot be read at the moment/);
});
