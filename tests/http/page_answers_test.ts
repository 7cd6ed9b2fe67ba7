import assert from "node:assert/strict";
import { createLogger } from "../../src/telemetry/logger.ts";
import { RecentProblems } from "../../src/telemetry/recent_problems.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { runLarder } from "../support/run_larder.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "hello-1.0", size: 300_000 });

/** The text of a part of the page, in one line. */
async function partOf(cache: TestCache, id: string, query = ""): Promise<string> {
  const html = await (await cache.get(`/${query}`, { accept: "text/html" })).text();
  const part = new RegExp(`id="${id}"[^>]*>([^]*?)</(?:section|dl)>`).exec(html);
  return (part?.[1] ?? "").replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

Deno.test("page: is it working? … one line says so, or what to do", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(object.storePathHash);
  assert.match(await partOf(cache, "verdict"), /All is well The upstream answers\. 0 B stored\./);

  await using alone = await TestCache.open({ upstreams: ["http://127.0.0.1:1"] });
  await alone.get(`/${object.storePathHash}.narinfo`);
  const broken = await partOf(alone, "verdict");
  assert.match(
    broken,
    /Only stored paths are served The upstream is down\. What to do: check --cache-/,
  );

  await using half = await TestCache.open({ upstreams: [upstream, "http://127.0.0.1:1"] });
  await half.narinfo(object.storePathHash);
  assert.match(
    await partOf(half, "verdict"),
    /Needs a look 1 upstream of 2 is down: 127\.0\.0\.1:1\. What to do: check --cache-/,
  );

  await using untrusting = await TestCache.open({ upstreams: [upstream], trustedKeys: [] });
  await untrusting.get(`/${object.storePathHash}.narinfo`);
  const untrusted = await partOf(untrusting, "verdict");
  assert.match(untrusted, /No trusted key signs .* give its public key with --cache-upstream-/);
});

Deno.test("page: an upstream's 503 has its status in each row, and one remedy", async () => {
  await using upstream = await fakeUpstream({});
  upstream.onRequest = () => Promise.resolve(new Response("", { status: 503 }));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.get(`/${object.storePathHash}.narinfo`);
  const { host } = new URL(upstream.url);
  const parts = [];
  for (const id of ["verdict", "upstreams", "problems"]) parts.push(await partOf(cache, id));
  const [verdict = "", upstreams = "", problems = ""] = parts;
  assert.match(
    verdict,
    new RegExp(`Upstream ${host} answers with HTTP status 503\\. What to do: `),
  );
  assert.match(upstreams, /Last error .*: it answered with HTTP status 503\./);
  assert.match(problems, /Upstream failed .* it answered with HTTP status 503/);
  assert.equal(parts.join().match(/wait; if it lasts/g)?.length, 1);
});

Deno.test("page: an outage is there after hours, and larder status says the same", async () => {
  const startedAtMs = Date.UTC(2026, 0, 2, 12);
  let nowMs = startedAtMs;
  const problems = new RecentProblems(() => nowMs);
  problems.watch(createLogger("error", { write() {} }))
    .event("nar-store-away", { hint: "check the store" });
  nowMs += 5 * 3_600_000;
  await using cache = await TestCache.open({ upstreams: [], problems, nowMs: () => nowMs });
  await using server = cache.listen();

  const page = await partOf(cache, "verdict");
  const { status, out } = await runLarder(["status", "--strict", "--server", server.url]);

  const told = ["Needs a look", "NAR store unavailable: NARs pass through, since 12:00 UTC"];
  assert.ok(page.includes(`${told.join(" ")}. What to do: check the store.`), page);
  assert.equal(
    out.split("\n").slice(1, 4).join("\n"),
    `✗ ${told[0]}\n  ✗ ${told[1]}\n    check the store`,
  );
  assert.equal(status, 1);
});

Deno.test("page: what did it save me? … the bytes since the first start", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const nowMs = () => Date.UTC(2026, 2, 17, 12);
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs });
  const earlier = { tier: "lifetime", atMs: 0 } as const;
  await cache.metadata.recordHistory([
    { ...earlier, figure: "saved_bytes", amount: 312 * 2 ** 30 },
    { ...earlier, figure: "since_ms", amount: Date.UTC(2026, 0, 2) },
  ], []);
  await cache.startHistory();
  const path = await cache.narPath(object.storePathHash);
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  for (let count = 0; count < 4; count++) await (await cache.get(path)).bytes();
  assert.match(await partOf(cache, "figures"), /Saved in all 312\.0 GiB since 2 January 2026/);
  await using server = cache.listen();
  const { out } = await runLarder(["status", "--server", server.url]);
  assert.match(out, /^Saved {6}312\.0 GiB of .* since 2 January 2026$/m);
  const charts = await partOf(cache, "charts", "?range=hour");
  assert.match(
    charts,
    /^ Too few changes in the last hour for a chart: served [\d.]+ MiB , fetched [\d.]+ \w+ , .* saved 1\.1 MiB ,/,
  );
  assert.match(charts, /From \(UTC\) served fetched .* 12:00 1\.4 MiB 293\.\d KiB/);
});

Deno.test("page: a kind of problem is one row, with each subject and its times", async () => {
  const minute = (count: number) => Date.UTC(2026, 0, 2, 12, count);
  const kind = {
    ...{ part: "upstreams", event: "upstream-down" as const, level: "warn" as const },
    message: "upstream is down",
  };
  const between = (firstAtMs: number, lastAtMs: number) => ({
    ...{ firstAtMs, begunAtMs: firstAtMs, lastAtMs },
  });
  const list = [
    { ...kind, facts: { upstream: "https://a" }, ...between(minute(3), minute(9)) },
    { ...kind, facts: { upstream: "https://b" }, ...between(minute(1), minute(2)) },
  ];
  const problems = (overAtMs: readonly (number | undefined)[]) => ({
    list: () => list.map((one, index) => ({ ...one, count: 2, overAtMs: overAtMs[index] })),
  });
  const nowMs = () => minute(30);
  const rowOf = async (overAtMs: readonly (number | undefined)[]) => {
    await using cache = await TestCache.open({
      upstreams: [],
      problems: problems(overAtMs),
      nowMs,
    });
    return await partOf(cache, "problems");
  };
  const times = "4 times, from 12:01 UTC to 12:09 UTC";
  assert.equal(
    await rowOf([undefined, minute(4)]),
    ` warning Upstream is down https://a https://b, over since 12:04 UTC ${times} `,
  );
  assert.equal(
    await rowOf([minute(20), minute(4)]),
    ` over Upstream is down https://a https://b ${times} ; over since 12:20 UTC `,
  );
});

Deno.test("page: a NAR that no upstream sent is one row, with causes and a remedy", async () => {
  const problems = new RecentProblems(() => Date.UTC(2026, 0, 2, 12));
  const log = problems.watch(createLogger("error", { write() {} }));
  const nar = { nar: "1.nar.xz", name: "big-1.0", reason: "status" };
  log.event("download-broke-off", { ...nar, upstream: "https://a", status: 503 });
  log.event("download-broke-off", { ...nar, upstream: "https://b", status: 500 });
  log.event("nar-not-fetched", { ...nar, upstream: "https://b", status: 500 });
  await using cache = await TestCache.open({ upstreams: [], problems });
  assert.match(
    await partOf(cache, "problems"),
    new RegExp(
      "^ warning NAR requests failed, and clients got 404 " +
        "big-1.0, https://b, it answered with HTTP status 500 " +
        "Download broke off, big-1.0, https://a, it answered with HTTP status 503 " +
        "2 times, at .* What to do: check the upstreams and the network: [^.]* 404\\. $",
    ),
  );
});

Deno.test("page: an unused cache says so, in place of empty charts", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  assert.match(await partOf(cache, "charts"), /^ ?Nothing yet: the charts begin/);
  assert.match(await partOf(cache, "verdict"), /No request since .* use this cache/);
});
