import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { HeldClock } from "../support/held_clock.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";

const BEGIN_MS = Date.UTC(2026, 10, 27, 21, 10);
const [firefox, glibc, other] = ["firefox-145.0", "glibc-2.40", "other-1.0"]
  .map((name, seed) => makeStoreObject({ name, seed, size: 60_000 }));
const objects = [firefox, glibc, other].filter((one) => one !== undefined);
const SILENCE_MS = 10_000;

const hashOf = (object: typeof firefox) => object?.storePathHash ?? "";

function open(clock: HeldClock, options: Partial<TestCacheOptions>): Promise<TestCache> {
  return TestCache.open({ upstreams: [], nowMs: () => clock.wallMs(), ...options });
}

type Shown = Record<string, unknown>;

async function pullsOf(cache: TestCache, query = ""): Promise<Shown[]> {
  const answer = await cache.get(`/pulls${query}`);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "application/json");
  return await answer.json();
}

/** Asks for the narinfo and the NAR, as Nix does. */
async function pull(cache: TestCache, object: typeof firefox, peer = "10.0.0.7"): Promise<number> {
  const narinfo = await cache.request("GET", `/${hashOf(object)}.narinfo`, {}, { peer });
  const text = await narinfo.text();
  assert.equal(narinfo.status, 200);
  const path = /^URL: (.*)$/m.exec(text)?.[1];
  const nar = await cache.request("GET", `/${path}`, {}, { peer });
  assert.equal(nar.status, 200);
  return text.length + (await nar.bytes()).length;
}

Deno.test("pulls: a burst is one pull, and says where its time went", async () => {
  using clock = new HeldClock(BEGIN_MS);
  let isSlow = false;
  await using upstream = await fakeUpstream({
    objects,
    stored: true,
    onRequest: ({ path }) => {
      if (path === `/${hashOf(glibc)}.narinfo`) clock.advance(15_000);
      if (isSlow && path.startsWith("/nar/")) clock.advance(1_500);
      return undefined;
    },
  });
  await using cache = await open(clock, { upstreams: [upstream] });
  await pull(cache, firefox);
  await cache.downloadsOver();
  isSlow = true;
  clock.advance(SILENCE_MS);

  const bytes = await pull(cache, firefox);
  clock.advance(1_000);
  const more = await pull(cache, glibc);
  assert.deepEqual(
    (await pullsOf(cache)).map(({ running }) => running),
    [true, false],
    "the second one may go on",
  );
  clock.advance(SILENCE_MS);

  const [second, first, ...none] = await pullsOf(cache);
  assert.deepEqual(none, []);
  assert.equal(first?.["fetched"], 1);
  const { id, sentence, waited_for, ...shown } = second ?? {};
  assert.deepEqual(shown, {
    client: "10.0.0.7",
    running: false,
    requests_under_way: 0,
    began_at: new Date(BEGIN_MS + SILENCE_MS).toISOString(),
    seconds: 17.5,
    waiting_seconds: 16.5,
    fetching_seconds: 0,
    sending_seconds: 0,
    client_seconds: 1,
    name: "firefox-145.0",
    what: "firefox-145.0 and 1 more",
    paths: 2,
    hits: 1,
    joined: 0,
    fetched_ahead: 0,
    fetched: 1,
    not_found: 0,
    bytes: bytes + more,
    saved_bytes: bytes,
  });
  const { host } = new URL(upstream.url);
  assert.deepEqual(waited_for, [{
    ...{ upstream: host, paths: 1, asked_in_vain: 0, seconds: 16.5 },
    ...{ sent_paths: 0, sending_seconds: 0 },
  }]);
  assert.match(
    String(sentence),
    new RegExp(
      `^10\\.0\\.0\\.7, 21:10 UTC, firefox-145\\.0 and 1 more, 18 s: ` +
        `17 s waited for ${host} \\(1 path\\), 1\\.0 s of the client itself; ` +
        `1 hit, 1 fetched; [\\d.]+ KiB, of which [\\d.]+ KiB saved$`,
    ),
  );

  const whole = await (await cache.get(`/pulls/${id}`)).json();
  assert.deepEqual(
    whole.slowest.map((one: Shown) => [one["name"], one["result"], one["upstream"]]),
    [
      ["glibc-2.40", "fetched", host],
    ],
  );
  assert.deepEqual(whole.slowest[0].narinfo, {
    ...{ at_seconds: 1, waited_seconds: 15 },
    waited_for: [{ upstream: host, seconds: 15 }],
  });
  assert.equal(whole.slowest[0].nar.waited_seconds, 1.5);

  const html = { accept: "text/html" };
  const page = await (await cache.get("/", html)).text();
  assert.ok(page.includes(`href="pulls/${id}">firefox-145.0 and 1 more</a>`));
  assert.match(page, /10\.0\.0\.7, 21:10 UTC, 18 s: 17 s waited for /);
  const timeline = await cache.get(`/pulls/${id}`, html);
  assert.equal(timeline.headers.get("content-type"), "text/html; charset=utf-8");
  assert.match(timeline.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  const drawn = await timeline.text();
  assert.ok(drawn.includes("<b>glibc-2.40</b>") && !drawn.includes("<script"));
  assert.match(drawn, /waited 15 s for the narinfo and 1\.5 s for the NAR from 127\.0\.0\.1:/);
});

Deno.test("pulls: larder's own commands and other members are no clients", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await open(clock, { upstreams: [upstream] });
  const path = await cache.narPath(hashOf(firefox), { "x-larder-command": "warm" });
  await (await cache.get(path, { "x-larder-command": "warm" })).bytes();
  await cache.head(`/${"0".repeat(32)}.narinfo`, { "x-larder-command": "warm" });
  clock.advance(SILENCE_MS);
  assert.deepEqual(await pullsOf(cache), []);
});

Deno.test("pulls: each client has its own, and ?client= shows one", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using upstream = await fakeUpstream({ objects, stored: true });
  const tokens = [
    { name: "laptop", role: "read", secret: "laptop-secret-1234" },
    { name: "ci", role: "read", secret: "ci-secret-123456789" },
    { name: "ada", role: "admin", secret: "ada-secret-12345678" },
  ] as const;
  await using cache = await open(clock, { upstreams: [upstream], tokens });
  const as = (name: string) => ({
    authorization: `Bearer ${tokens.find((one) => one.name === name)?.secret}`,
  });
  await cache.narinfo(hashOf(firefox), as("laptop"));
  await cache.narinfo(hashOf(glibc), as("ci"));
  clock.advance(SILENCE_MS);
  const shownTo = async (name: string, query = "") => {
    const pulls: Shown[] = await (await cache.get(`/pulls${query}`, as(name))).json();
    return pulls.map(({ client }) => client);
  };

  assert.equal((await cache.get("/pulls")).status, 401, "it needs the read role");
  assert.deepEqual((await shownTo("ada")).toSorted(), ["ci", "laptop"]);
  assert.deepEqual(await shownTo("ada", "?client=ci"), ["ci"]);
  assert.deepEqual((await shownTo("laptop")).toSorted(), ["another client", "laptop"]);
  assert.deepEqual(await shownTo("laptop", "?client=laptop"), ["laptop"]);
  assert.deepEqual(await shownTo("laptop", "?client=ci"), []);
  const [{ id } = {}]: Shown[] = await (await cache.get("/pulls?client=ci", as("ada"))).json();
  for (const path of ["/", `/pulls/${id}`]) {
    const html = { accept: "text/html", ...as("laptop") };
    const page = await (await cache.get(path, html)).text();
    assert.ok(page.includes("another client, 21:10 UTC"), path);
    assert.ok(!/\bci, 21:10/.test(page), "no address and no name of another");
  }
});

Deno.test("pulls: bad input gets a sentence", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (const client of ["", "x".repeat(201)]) {
    const answer = await cache.get(`/pulls?client=${client}`);
    assert.equal(answer.status, 400);
    assert.match(await answer.text(), /^The client must be a token's name or an address, .*\n$/);
  }
  for (
    const [path, line] of [
      ["/pulls?klient=a", /^Bad Request: unknown parameter klient: expected client\n$/],
      ["/pulls?client=a&client=b", /^Bad Request: parameter client more than once: /],
      ["/pulls?client=a&%1b[31m=b", /^Bad Request: unknown parameter: expected client\n$/],
      ["/pulls/..%2f", /^Bad Request: the path has a broken escape, .* escaped slash\n$/],
      ["/pulls/0-0?client=a", /^Bad Request: unknown parameter client: expected none\n$/],
    ] as const
  ) {
    const answer = await cache.get(path);
    assert.equal(answer.status, 400, path);
    assert.match(await answer.text(), line);
  }
  for (const id of ["0-0", "", "a/b"]) {
    const unknown = await cache.get(`/pulls/${id}`);
    assert.equal(unknown.status, 404);
    assert.match(await unknown.text(), /^Not Found: no pull has this id\. .*\/pulls lists them\n$/);
  }
  assert.deepEqual(await pullsOf(cache, "?client=nobody"), []);
});

Deno.test("pulls: what nobody has is not found, and waited for", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using upstream = await fakeUpstream({
    objects,
    onRequest: ({ path }) => {
      if (path.endsWith(".narinfo")) clock.advance(3_000);
      return undefined;
    },
  });
  await using cache = await open(clock, { upstreams: [upstream] });
  const absent = "0".repeat(32);
  await cache.get(`/${absent}.narinfo`);
  clock.advance(SILENCE_MS);
  const [shown] = await pullsOf(cache);
  assert.deepEqual([shown?.["not_found"], shown?.["paths"], shown?.["what"]], [1, 0, "no path"]);
  assert.equal(shown?.["waiting_seconds"], 3);
  const whole = await (await cache.get(`/pulls/${shown?.["id"]}`)).json();
  assert.deepEqual([whole.slowest[0].name, whole.slowest[0].result], [absent, "absent"]);
});
