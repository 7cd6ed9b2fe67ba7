import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { status } from "../support/faults.ts";
import { readStats } from "../support/stats_of.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const others = Array.from({ length: 5 }, (_, seed) => makeStoreObject({ name: "other", seed }));
const PATH = `/${object.storePathHash}.narinfo`;
const stored = { objects: [object, ...others], stored: true } as const;

Deno.test("health: an upstream that is off at the start is a warning that names it", async () => {
  await using off = await fakeUpstream(stored);
  await using odd = await fakeUpstream(stored);
  await using well = await fakeUpstream(stored);
  await off.stop();
  odd.onRequest = () => Promise.resolve(new Response("StoreDir: /gnu/store\n"));
  await using cache = await TestCache.open({ upstreams: [off, odd, well], timeoutMs: 3_000 });

  cache.probeUpstreams();
  await eventually("both are told of", () => cache.logged("warn").length === 2);

  const told = new Map(cache.logged("warn").map((line) => [line["upstream"], line]));
  const line = told.get(off.url);
  assert.deepEqual([line?.msg, line?.["reason"]], ["upstream does not answer", "unreachable"]);
  assert.match(String(line?.["hint"]), /--cache-upstream-url/);
  assert.equal(told.get(odd.url)?.msg, "upstream is no binary cache");
  assert.equal(told.has(well.url), false);
});

Deno.test("health: an upstream of another store directory gets no request of a client", async () => {
  await using foreign = await fakeUpstream({ ...stored, priority: 1 });
  await using well = await fakeUpstream(stored);
  foreign.onRequest = ({ path }) => (
    path === "/nix-cache-info" ? new Response(`StoreDir: /gnu/store\nPriority: 1\n`) : undefined
  );
  await using cache = await TestCache.open({ upstreams: [foreign, well], timeoutMs: 3_000 });
  cache.probeUpstreams();
  const isToldOf = () => cache.log.some(({ upstream }) => upstream === foreign.url);
  await eventually("it is told of", isToldOf);

  const narPath = await cache.narPath(object.storePathHash);
  assert.equal((await cache.get(narPath)).status, 200);
  assert.equal((await cache.get(`/${others[0]?.storePathHash}.ls`)).status, 404);
  const unknownNar = `/nar/${"0".repeat(52)}.nar.xz`;
  for (const origin of ["MISS", "HIT"]) {
    const { status, headers } = await cache.get(unknownNar);
    assert.deepEqual([status, headers.get("x-cache")], [404, origin]);
  }

  assert.deepEqual(foreign.requests.map(({ path }) => path), ["/nix-cache-info"]);
  const [line, ...more] = cache.logged("warn");
  assert.deepEqual([line?.msg, line?.["upstream"], more], [
    ...["upstream is no binary cache", foreign.url, []],
  ]);
  assert.match(String(line?.["detail"]), /store directory is \/gnu\/store/);
  const { upstreams } = await readStats(await cache.get("/stats"));
  assert.deepEqual(upstreams.map(({ is_up }) => is_up), [false, true]);
});

Deno.test("health: an upstream without nix-cache-info and narinfos is a warning after twenty", async () => {
  await using empty = await fakeUpstream({ priority: "absent" });
  await using bare = await fakeUpstream({ ...stored, priority: "absent" });
  await using cache = await TestCache.open({ upstreams: [empty, bare], timeoutMs: 3_000 });
  const told = () => cache.logged("warn").map(({ msg, upstream }) => `${msg} ${upstream}`);
  await cache.narinfo(object.storePathHash);
  for (let count = 1; count < 40; count++) {
    assert.deepEqual(told(), count < 20 ? [] : [`upstream has nothing ${empty.url}`], `${count}`);
    const hash = `${count}`.padStart(32, "0");
    assert.equal((await cache.get(`/${hash}.narinfo`)).status, 404);
  }
  assert.match(String(cache.logged("warn")[0]?.["hint"]), /path of --cache-upstream-url/);
});

Deno.test("health: a failure at the start is the upstream's last error in /stats", async () => {
  await using off = await fakeUpstream(stored);
  await using odd = await fakeUpstream(stored);
  await using ill = await fakeUpstream(stored);
  await off.stop();
  odd.onRequest = () => Promise.resolve(new Response("StoreDir: /gnu/store\n"));
  ill.onRequest = () => Promise.resolve(new Response("", { status: 500 }));
  await using cache = await TestCache.open({ upstreams: [off, odd, ill], timeoutMs: 3_000 });

  cache.probeUpstreams();
  await eventually("all are told of", () => cache.logged("warn").length === 3);

  const { upstreams, verdict, problems } = await readStats(await cache.get("/stats"));
  assert.deepEqual(upstreams.map(({ last_answer }) => last_answer), [null, null, null]);
  assert.deepEqual(upstreams.map(({ last_error }) => last_error?.reason), [
    ...["unreachable", "garbage", "status"],
  ]);
  assert.match(upstreams[0]?.last_error?.hint ?? "", /--cache-upstream-url/);
  const told = problems.map(({ facts }) => `${facts["upstream"]} ${facts["hint"]}`).toSorted();
  assert.deepEqual(told, upstreams.map((one) => `${one.url} ${one.last_error?.hint}`).toSorted());
  assert.equal(verdict.text, "Only stored paths are served");
});

Deno.test("health: an upstream whose NARs are all errors does not read as well", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs: 3_000 });
  const paths = [];
  for (const { storePathHash } of others) paths.push(await cache.narPath(storePathHash));
  const verdict = async () => (await readStats(await cache.get("/stats"))).verdict;
  upstream.breakNar(status(404));
  await cache.get(paths[0] ?? "");
  assert.equal((await verdict()).text, "All is well", "an absence is an answer");
  upstream.breakNar(status(500));
  assert.equal((await cache.get(paths[1] ?? "")).status, 404);
  const { host } = new URL(upstream.url);
  const [fault, ...more] = (await verdict()).faults;
  assert.deepEqual([fault?.level, fault?.text, more.length], [
    ...["error", `Upstream ${host} answers NAR requests with HTTP status 500`, 0],
  ]);
  upstream.mend();
  await (await cache.get(paths[2] ?? "")).bytes();
  await cache.downloadsOver();
  assert.equal((await verdict()).text, "All is well");
});

Deno.test("health: an upstream that is up again gets requests for absent paths", async () => {
  await using absent = await fakeUpstream({ stored: true });
  await using upstream = await fakeUpstream(stored);
  await upstream.stop();
  await using cache = await TestCache.open({ upstreams: [absent, upstream] });
  for (const { storePathHash } of others) await cache.get(`/${storePathHash}.narinfo`);
  await eventually("it is down", () => isLogged(cache, "upstream is down"));
  for (const source of ["MISS", "HIT"]) {
    const answer = await cache.get(PATH);
    assert.deepEqual([answer.status, answer.headers.get("x-cache")], [404, source]);
  }
  await upstream.start();
  await eventually("it is up", () => isLogged(cache, "upstream is up again"));
  assert.equal((await cache.get(PATH)).status, 200);
});

function isLogged(cache: TestCache, text: string): boolean {
  return cache.log.some(({ msg }) => msg === text);
}
