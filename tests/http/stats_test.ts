import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import type { Stats } from "../../src/http/stats/stats.ts";
import { playRuntime } from "../../src/runtime/current.ts";
import { SystemClock } from "../../src/runtime/clock.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate } from "../support/faults.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { readStats } from "../support/stats_of.ts";
import { scrape } from "../support/scrape.ts";
import { chain, makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { reportedMembers } from "../support/reported_members.ts";
import { AS_WRITER, pushOf, uploadCache } from "../support/uploading.ts";

const object = makeStoreObject({ name: "big-1.0", size: 4_000_000 });
const HASH = object.storePathHash;
const stored = makeStoreObject({ name: "stored-1.0", size: 24_000_000 });
const ABSENT = "0".repeat(32);
const ISO_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function statsOf(cache: TestCache, path = "/stats"): Promise<Stats> {
  const answer = await cache.get(path);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(answer.headers.get("cache-control"), "no-store, no-transform");
  return await readStats(answer);
}

Deno.test("stats: hits, misses and saved bytes are those of the responses", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 9_000_000 });
  const before = await statsOf(cache);
  assert.deepEqual(before.requests.nar, {
    hits: 0,
    misses: 0,
    joined: 0,
    prefetched: 0,
    absent: 0,
    commands: 0,
    hit_ratio: null,
  });
  assert.deepEqual(before.traffic, { served_bytes: 0, upstream_bytes: 0, saved_bytes: 0 });
  const nothing = { last_answer: null, last_nar_answer: null, last_error: null, latencies_ms: [] };
  const answers = { found: 0, absent: 0, failed: 0 };
  const waits = { count: 0, late: 0, total_ms: 0, longest_ms: 0 };
  assert.deepEqual(before.upstreams, [
    {
      url: upstream.url,
      is_up: true,
      sends_nars: true,
      priority: null,
      ...nothing,
      answers,
      waits,
      slow_answers: { count: 0, longest_ms: 0 },
      last_wait: null,
      nar_bytes_per_second: null,
    },
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
    commands: 0,
    hit_ratio: 0.75,
  });
  assert.deepEqual(after.requests.narinfo, {
    hits: 0,
    misses: 2,
    joined: 0,
    prefetched: 0,
    absent: 1,
    commands: 0,
    hit_ratio: 0,
  });
  assert.equal(after.traffic.saved_bytes, 3 * length);
  assert.equal(after.traffic.upstream_bytes, length);
  const { database_bytes, ...size } = after.size;
  assert.equal(database_bytes, (await cache.metadata.databaseSize()).bytes);
  assert.ok(database_bytes > 100_000);
  assert.deepEqual(size, {
    used_bytes: length,
    reserved_bytes: 0,
    pinned_bytes: 0,
    limit_bytes: 9_000_000,
    limit_source: "set",
    disk_reserve_bytes: null,
    disk_free_bytes: null,
    evicted_bytes: 0,
    evicted_entries: 0,
    recompressed_bytes: 0,
  });
  const [asked] = after.upstreams;
  assert.deepEqual([asked?.is_up, asked?.priority, asked?.last_answer?.result], [
    true,
    40,
    "absent",
  ]);
  assert.match(asked?.last_answer?.at ?? "", ISO_REGEXP);
  assert.equal(after.public_key, cache.secretKey.publicKey.text);
});

Deno.test("stats: a download shows its name and how far it is, until it is over", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, upstream, cache, path } = scene;
  gate.release(1_000_000);
  const answer = await cache.get(path);
  let download: Stats["downloads"]["under_way"][number] | undefined;
  await eventually("the first million is here", async () => {
    download = (await statsOf(cache)).downloads.under_way[0];
    return download?.received_bytes === 1_000_000;
  });
  const { started_at = "", bytes_per_second: _, seconds_left: _2, ...rest } = download ?? {};
  const fileBytes = (await upstream.narFileOf(object)).bytes.length;
  assert.deepEqual(rest, {
    nar: path.slice("/nar/".length),
    name: "big-1.0",
    state: "receiving",
    received_bytes: 1_000_000,
    file_bytes: fileBytes,
    client_count: 1,
    clients: ["127.0.0.1"],
  });
  assert.match(started_at, ISO_REGEXP);

  gate.open();
  await answer.bytes();
  await cache.downloadsOver();
  assert.deepEqual((await statsOf(cache)).downloads, { count: 0, under_way: [] });
});

Deno.test("stats: a pass-through is in flight once for each client", async () => {
  await using scene = await GatedNar.open(object, { limitBytes: 1_000 });
  const { gate, upstream, cache, path } = scene;
  const fileBytes = (await upstream.narFileOf(object)).bytes.length;
  const inFlight = async () => (await scrape(cache)).value("larder_in_flight_downloads");
  gate.release(1_000_000);
  const answers = [await cache.get(path), await cache.get(path)];
  const bodies = answers.map((answer) => answer.bytes());
  let under_way: Stats["downloads"]["under_way"] = [];
  await eventually("the first million is there", async () => {
    under_way = (await statsOf(cache)).downloads.under_way;
    return under_way.length === 2 && under_way.every((one) => one.received_bytes === 1_000_000);
  });
  for (const { nar, name, state, file_bytes: announced } of under_way) {
    const shown = [path.slice("/nar/".length), "big-1.0", "receiving", fileBytes];
    assert.deepEqual([nar, name, state, announced], shown);
  }
  assert.deepEqual([(await statsOf(cache)).downloads.count, await inFlight()], [2, 2]);

  gate.open();
  for (const body of bodies) assert.equal((await body).length, fileBytes);
  assert.deepEqual((await statsOf(cache)).downloads, { count: 0, under_way: [] });
  assert.equal(await inFlight(), 0);
});

Deno.test("stats: pins are there at once, and the counts of their paths soon after", async () => {
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
    return (await statsOf(cache)).pins?.counted_at !== null;
  });
  const counted = (await statsOf(cache)).pins?.roots[0];
  assert.deepEqual([counted?.stored, counted?.missing], [2, 0]);

  await cache.request("DELETE", `/pin/${root.storePathHash}.narinfo`);
  assert.deepEqual((await statsOf(cache)).pins?.roots, []);
});

Deno.test("stats: problems reveal nothing about our machine", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  cache.blockTempFolder();
  await (await cache.get(path)).bytes();
  const message = "nars cannot be kept: they pass through";
  const line = cache.logged("error").find(({ msg }) => msg === message);
  assert.match(String(line?.detail), /Not a directory/, "the log has it all");

  const answer = await (await cache.get("/stats")).text();
  const [problem] = (await readStats(new Response(answer))).problems;
  const { first_at, begun_at: _begun, last_at, over_at: _, ...rest } = problem ?? {};
  const hint = "make room on the disk of the storage, or replace the disk if it fails";
  const facts = { nar: path.slice("/nar/".length), name: "big-1.0", hint };
  assert.deepEqual(rest, {
    ...{ part: "disk", event: "nars-not-kept", level: "error", message, facts, count: 1 },
  });
  assert.match(`${first_at} ${last_at}`, /Z .*Z$/);
  const page = await (await cache.get("/", { accept: "text/html" })).text();
  for (const text of [answer, page]) {
    assert.doesNotMatch(text, new RegExp(cache.folder.path));
    assert.doesNotMatch(text, /\.ts:\d|os error|\w\.part/);
  }
});

Deno.test("stats: every field is documented, and every documented field is there", async () => {
  const gate = new Gate();
  await using upstream = await fakeUpstream({ objects: [object, stored], stored: true });
  const upstreams = [upstream, "http://127.0.0.1:1"];
  const members = reportedMembers({ other: {} });
  await using cache = await uploadCache({ upstreams, members });
  const storedPath = await cache.narPath(stored.storePathHash);
  await (await cache.get(storedPath)).bytes();
  await cache.downloadsOver();
  await using server = cache.listen();
  // Too large for the buffers of a connection.
  const sent = await fetch(`${server.url}${storedPath}`);
  upstream.breakNar(gate.fault);
  const path = await cache.narPath(HASH);
  gate.release(1_000);
  const answer = await cache.get(path);
  await cache.request("POST", `/pins/names?name=host/a&keep=3&root=${HASH}`);
  const body = new TransformStream<Uint8Array, Bytes>();
  const pushed = await pushOf(makeStoreObject({ name: "pushed-1.0" }));
  const putting = cache.put(pushed.narPath, body.readable, AS_WRITER);
  await eventually("the upload comes in", async () => (await statsOf(cache)).uploads.count === 1);
  await cache.reportToMembers();
  const stats = await statsOf(cache);
  await body.writable.close();
  await (await putting).text();
  gate.open();
  await answer.bytes();
  await sent.bytes();
  await cache.downloadsOver();

  const table = Deno.readTextFileSync("docs/stats.md").split("\n").filter((line) => {
    return line.startsWith("| `");
  });
  const documented = table.flatMap((line) => {
    return [...line.split(" | ", 1)[0]?.matchAll(/`([^`]+)`/g) ?? []].map(([, name]) => name);
  });
  // On a slow machine something has waited, and on a quick one nothing has.
  const upstreamsOf = stats.upstreams.map((one) => ({ ...one, last_wait: null }));
  const fields = fieldsOf({ ...stats, upstreams: upstreamsOf });
  assert.deepEqual([...fields].sort(), documented.sort());
});

/** The names of all fields, as the documentation writes them. */
function fieldsOf(value: unknown, at = ""): ReadonlySet<string> {
  if (at === "problems[].facts") return new Set();
  if (Array.isArray(value)) {
    const maybeEmpty = at === "upstreams[].latencies_ms";
    assert.ok(value.length > 0 || maybeEmpty, `${at} has something in it`);
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
const GROUPS = [
  ...["verdict", "requests", "prefetch", "traffic", "lifetime", "history", "size"],
  ...["downloads", "verification_backlog", "uploads", "sends"],
];

Deno.test("stats: the range of the past is the requested one", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(HASH);
  const steps = { hour: 60, day: 1_800, week: 10_800, month: 43_200, lifetime: 1_800, no: 1_800 };
  for (const [range, step] of Object.entries(steps)) {
    const { history } = await statsOf(cache, `/stats?range=${range}`);
    assert.deepEqual([history.step_seconds, history.slots.length >= 48], [step, true], range);
    assert.equal(history.slots.at(-1)?.figures?.narinfo_misses, 1, range);
    assert.equal(history.slots[0]?.figures, null, range);
  }
  assert.equal((await statsOf(cache)).lifetime.requests, 1);
});

Deno.test("stats: a broken database takes the pins away, and leaves the rest", async () => {
  await using cache = await TestCache.open({ upstreams: ["http://127.0.0.1:1"] });
  await cache.metadata[Symbol.asyncDispose]();
  const { pins, size, upstreams } = await statsOf(cache);
  assert.deepEqual([pins, size.used_bytes, upstreams.length], [null, 0, 1]);
  const page = await (await cache.get("/", { accept: "text/html" })).text();
  assert.match(page, /The pins cannot be read at the moment/);
});

/** Time limits in turns of the event loop, one for 10 ms. */
class LimitsInTurns extends SystemClock implements Disposable {
  readonly #played = playRuntime({ clock: this });

  override within<Value>(work: Promise<Value>, limitMs: number): Promise<Value | undefined> {
    return Promise.race([work, this.passed(limitMs).then(() => undefined)]);
  }

  async passed(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 10) await this.soonOver();
  }

  [Symbol.dispose](): void {
    this.#played[Symbol.dispose]();
  }
}

Deno.test("stats: a database that hangs takes a second, and no figure in memory", async () => {
  using time = new LimitsInTurns();
  await using cache = await uploadCache();
  let isHung = false;
  let hasAnswered = false;
  // The app keeps what it finds here at its first call.
  cache.metadata.narinfosOf = async () => {
    if (!isHung) return [];
    await time.passed(20_000);
    hasAnswered = true;
    return [];
  };
  const body = new TransformStream<Uint8Array, Bytes>();
  const pushed = await pushOf(makeStoreObject({ name: "pushed-1.0" }));
  const putting = cache.put(pushed.narPath, body.readable, AS_WRITER);
  await eventually("the upload comes in", async () => (await statsOf(cache)).uploads.count === 1);

  isHung = true;
  const answered = statsOf(cache);
  await time.passed(900);
  assert.equal(await Promise.race([answered, time.soonOver()]), undefined);
  const { uploads } = await answered;
  assert.ok(!hasAnswered);
  assert.deepEqual(uploads.under_way.map(({ name }) => name), [null]);
  await body.writable.close();
  await (await putting).text();
});
