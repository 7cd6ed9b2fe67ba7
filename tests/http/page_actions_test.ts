import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "kept", size: 20_000 });
const other = makeStoreObject({ name: "other", seed: 7 });
const OWN = { Host: "cache.test", Origin: "http://cache.test", "Sec-Fetch-Site": "same-origin" };
const FORM = "application/x-www-form-urlencoded";

interface Sent {
  readonly form: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A cache that serves one path, and a way to send its page's forms. */
async function openScene() {
  const closing = new AsyncDisposableStack();
  const upstream = closing.use(await fakeUpstream({ objects: [object, other], stored: true }));
  const cache = closing.use(await TestCache.open({ upstreams: [upstream] }));
  const server = closing.use(cache.listen());
  const post = async (path: string, { form, headers = {} }: Sent) => {
    const length = { "Content-Type": FORM, "Content-Length": String(form.length) };
    const text = requestText("POST", path, { ...OWN, ...length, ...headers });
    return await rawRequest(server.port, text + form);
  };
  const pins = async () => await (await cache.get("/pins")).json();
  return { cache, post, pins, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

Deno.test("page actions: a form pins and unpins by a path, a name or a hash", async () => {
  await using scene = await openScene();
  const { cache, post, pins } = scene;
  const hash = object.storePathHash;
  await cache.narinfo(hash);
  for (
    const path of [hash, `${hash}-kept`, `/nix/store/${hash}-kept`, ` /nix/store/${hash}-kept `]
  ) {
    const form = new URLSearchParams({ path }).toString();
    const pinned = await post("/page/pin", { form });
    assert.deepEqual([pinned.status, pinned.headers.get("location")], [303, "../#packages"], path);
    assert.deepEqual(await pins(), [hash]);
    const unpinned = await post("/page/unpin", { form });
    assert.deepEqual(
      [unpinned.status, unpinned.headers.get("location")],
      [303, `../?unpinned=${path.includes("kept") ? "kept" : hash}#packages`],
      path,
    );
    assert.deepEqual(await pins(), []);
  }
  assert.equal((await post("/page/pin", { form: `path=${"0".repeat(32)}` })).status, 404);
});

Deno.test("page actions: an unpin leads back to where the reader was, and is said there", async () => {
  await using scene = await openScene();
  const { cache, post } = scene;
  const hash = object.storePathHash;
  const locationOf = async (name: string, referer: string) => {
    const form = new URLSearchParams({ path: `${hash}-${name}` }).toString();
    return (await post("/page/unpin", { form, headers: { Referer: referer } })).headers.get(
      "location",
    );
  };
  for (const one of [hash, other.storePathHash]) {
    await cache.narinfo(one);
    await cache.request("POST", `/pin/${one}.narinfo`);
  }
  const page = "http://cache.test/below/?all&pins=100&range=week&unpinned=old";
  assert.equal(
    await locationOf("g++-1.0", page),
    `../?all=&pins=100&range=week&unpinned=g%2B%2B-1.0#pin-of-${other.storePathHash}`,
  );
  const shown = async (search: string) =>
    /<p id="unpinned" role="status">([^]*?)<\/p>/.exec(
      await (await cache.get(`/${search}`, { accept: "text/html" })).text(),
    )?.[1];
  assert.equal(await shown("?unpinned=g%2B%2B-1.0"), "Unpinned g++-1.0.");
  assert.equal(await shown(""), "");

  const hostile = await locationOf("kept", "http://x/?x=1&next=//evil.example");
  assert.equal(hostile, "../?unpinned=kept#packages");
  assert.equal(await shown(`?unpinned=${encodeURIComponent("<b>call 555</b>")}`), "");
});

Deno.test("page actions: a form evicts down to a size, an invalid one nothing", async () => {
  await using scene = await openScene();
  const { cache, post } = scene;
  const narPath = await cache.narPath(object.storePathHash);
  await (await cache.get(narPath)).bytes();
  await cache.downloadsOver();
  for (
    const form of [
      "gib=-1",
      "gib=x",
      "gib=1e99",
      "gib=0x10",
      "gib=1e-400",
      "gib=1e1",
      "gib=Infinity",
      "gib=%2B1",
      "gib=.5",
      "gib=5.",
      "gib=1_0",
      "gib=\u0663",
      "",
    ]
  ) {
    assert.equal((await post("/page/evict", { form })).status, 400, form);
  }
  assert.equal((await cache.narNames()).length, 1);
  assert.equal((await post("/page/evict", { form: "gib=0" })).status, 303);
  assert.deepEqual(await cache.narNames(), []);
});

Deno.test("page actions: a foreign form, another type and a long one change nothing", async () => {
  await using scene = await openScene();
  const { cache, post, pins } = scene;
  await cache.narinfo(object.storePathHash);
  const form = `path=${object.storePathHash}`;
  const refused: readonly (readonly [number, Sent])[] = [
    [403, { form, headers: { Origin: "http://evil.example" } }],
    [403, { form, headers: { Origin: "null" } }],
    [403, { form, headers: { "Sec-Fetch-Site": "cross-site" } }],
    [403, { form, headers: { Host: "evil.example", Origin: "http://evil.example" } }],
    [400, { form, headers: { "Content-Type": "text/plain" } }],
    [400, { form: `${form}&x=${"x".repeat(2_000)}` }],
  ];
  for (const [status, sent] of refused) {
    assert.equal((await post("/page/pin", sent)).status, status, JSON.stringify(sent.headers));
  }
  assert.deepEqual(await pins(), []);
});

Deno.test("page actions: the page has no button for those who may not pin", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const tokens = [
    { name: "nix", role: "read", secret: "reader" },
    { name: "root", role: "admin", secret: "admin" },
  ] as const;
  await using cache = await TestCache.open({ upstreams: [upstream], tokens });
  const as = (secret: string) => ({ accept: "text/html", authorization: `Bearer ${secret}` });
  const hash = object.storePathHash;
  await cache.get(`/${hash}.narinfo`, as("reader"));
  const forms = async (secret: string, query = "") => {
    const html = await (await cache.get(`/${query}`, as(secret))).text();
    const found = [...html.matchAll(/ action="(page\/\w+)"/g)].map(([, action]) => action);
    return { forms: found, signIn: html.includes('<a href="sign-in">') };
  };
  const bare = { forms: [], signIn: true };
  assert.deepEqual(await forms("reader"), bare);
  assert.deepEqual(await forms("reader", `?q=${hash}`), bare);
  assert.deepEqual(await forms("admin"), { forms: ["page/evict", "page/pin"], signIn: false });
  assert.equal((await forms("admin", `?q=${hash}`)).forms.length, 3);

  await cache.request("POST", `/pin/${hash}.narinfo`, as("admin"));
  assert.deepEqual(await forms("reader", `?q=${hash}`), bare);
  assert.deepEqual((await forms("admin", `?q=${hash}`)).forms, [
    ...["page/evict", "page/unpin", "page/unpin", "page/pin"],
  ]);
});

Deno.test("page actions: signing in asks a browser until its token may pin", async () => {
  const tokens = [
    { name: "nix", role: "read", secret: "reader" },
    { name: "root", role: "admin", secret: "admin" },
  ] as const;
  await using cache = await TestCache.open({ upstreams: [], tokens });
  for (const secret of ["", "guess", "reader"]) {
    const headers = secret === "" ? {} : { authorization: `Bearer ${secret}` };
    const answer = await cache.get("/sign-in", headers);
    const challenge = answer.headers.get("www-authenticate");
    assert.deepEqual([answer.status, challenge], [401, 'Basic realm="larder"'], secret);
  }
  const { status, headers } = await cache.get("/sign-in", { authorization: "Bearer admin" });
  assert.deepEqual([status, headers.get("location")], [303, "./"]);
});

Deno.test("page: a path that is not stored is not pinned, and a page says what to do", async () => {
  await using scene = await openScene();
  const root = "0".repeat(32);
  const answer = await scene.post("/page/pin", { form: `path=${root}` });
  const html = new TextDecoder().decode(answer.body);
  assert.equal(answer.status, 404);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/html/);
  assert.match(html, new RegExp(`has not stored ${root}.*larder warm ${root} --pin`));
  assert.match(html, /href="\.\.\/#packages"/);
});

Deno.test("page: the link to the metrics is there where larder answers them", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const html = await (await cache.get("/", { accept: "text/html" })).text();
  const metrics = await cache.get("/metrics");
  await metrics.body?.cancel();
  assert.equal(html.includes('href="metrics"'), metrics.status === 200);
});

Deno.test("page: a search with one hit explains it at once", async () => {
  await using scene = await openScene();
  await scene.cache.narinfo(object.storePathHash);
  const html = await (await scene.cache.get("/?q=kep", { accept: "text/html" })).text();
  assert.match(html, /The narinfo is stored, and its NAR file is not/);
  assert.match(html, />kep<\/textarea>/);
});
