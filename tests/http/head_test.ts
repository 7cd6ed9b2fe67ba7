import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 900_000 });
const NARINFO = `/${object.storePathHash}.narinfo`;

/** Differ from answer to answer, or say where it came from. */
const VARYING = ["date", "x-request-id"];

/** Documents of each kind, by path. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  "/n5glp21rsz314qssw9fbvfswgy3kc68f.ls": '{"version":1,"root":{"type":"directory","entries":{}}}',
  "/log/n5glp21rsz314qssw9fbvfswgy3kc68f-hello-2.12.1.drv": "unpacking sources\ndone: \u00e4\n",
  "/build-trace-v2/n5glp21rsz314qssw9fbvfswgy3kc68f-hello-2.12.1.drv/out.doi": '{"outPath":"x"}',
  [`/realisations/sha256:${"0f".repeat(32)}!out.doi`]: '{"id":"x","outPath":"y"}',
  "/debuginfo/bde350fa1f1bbde3649bfce3ae143b87683d8bf9": '{"archive":"../nar/x.nar.xz"}',
};
const NO_NAR = `/nar/${"0".repeat(52)}.nar`;
const NO_DOCUMENT = `/log/${"0".repeat(32)}-x.drv`;

type Asked = readonly [what: string, path: string, headers?: Readonly<Record<string, string>>];

Deno.test("HEAD: every route has the headers of GET", async () => {
  await using upstream = await fakeUpstream({
    objects: [object],
    stored: true,
    documents: DOCUMENTS,
  });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const nar = await cache.narPath(object.storePathHash);
  for (const path of Object.keys(DOCUMENTS)) await (await cache.get(path)).bytes();
  const kept = await cache.get(nar);
  await kept.bytes();
  await cache.downloadsOver();
  // From here on it is known to be absent.
  await cache.get(`/${"0".repeat(32)}.narinfo`);
  await cache.get(NO_NAR);
  await cache.get(NO_DOCUMENT);
  const tag = kept.headers.get("etag") ?? "";
  const asked: readonly Asked[] = [
    ["nix-cache-info", "/nix-cache-info"],
    ["key", "/pubkey"],
    ["health", "/healthz"],
    ["readiness", "/readyz"],
    ["pins", "/pins"],
    ["closures of pins", "/pins/closures"],
    ["names of pins", "/pins/names"],
    ["narinfo", NARINFO],
    ["no narinfo", `/${"0".repeat(32)}.narinfo`],
    ["nothing like a narinfo", "/x.narinfo"],
    ["NAR", nar],
    ["first bytes", nar, { Range: "bytes=0-9" }],
    ["last bytes", nar, { Range: "bytes=-9" }],
    ["from the middle", nar, { Range: "bytes=400000-" }],
    ["beyond the end", nar, { Range: "bytes=9999999-" }],
    ["several ranges", nar, { Range: "bytes=0-1,3-4" }],
    ["malformed range", nar, { Range: "bytes=x" }],
    ["a range of these bytes", nar, { "Range": "bytes=0-9", "If-Range": tag }],
    ["a range of others", nar, { "Range": "bytes=0-9", "If-Range": '"other"' }],
    ["what the client has", nar, { "If-None-Match": tag }],
    ["what the client has, weakly", nar, { "If-None-Match": `W/${tag}, "x"` }],
    ["no NAR", NO_NAR],
    ["nothing like a NAR", "/nar/x"],
    ["no route", "/nowhere"],
    ["malformed path", "/%zz"],
    ["another method's", `/pin/${object.storePathHash}.narinfo`],
    ["no document", NO_DOCUMENT],
    ["nothing like a document", "/log/x"],
    ...Object.keys(DOCUMENTS).map((path): Asked => [`document ${path}`, path]),
  ];
  await using server = cache.listen();

  for (const [what, path, headers] of asked) {
    const get = await headerLines(server.port, "GET", path, headers);
    const head = await headerLines(server.port, "HEAD", path, headers);
    assert.deepEqual(head, get, what);
  }
});

const FIGURES: readonly Asked[] = [
  ["page", "/", { Accept: "text/html" }],
  ["page for programs", "/", { Accept: "application/json" }],
  ["statistics", "/stats"],
  ["metrics", "/metrics"],
];

for (const [what, path, headers] of FIGURES) {
  Deno.test(`HEAD: the ${what} has the headers of GET, except for the length`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    await using server = cache.listen();
    // Figures change from one answer to the next.
    const lines = async (method: "GET" | "HEAD") =>
      (await headerLines(server.port, method, path, headers))
        .map((line) => line.replace(/^(content-length): [1-9][0-9]*$/, "$1: some"));
    const get = await lines("GET");
    assert.ok(get.includes("200") && get.includes("content-length: some"), get.join());
    assert.deepEqual(await lines("HEAD"), get);
  });
}

for (const isStored of [true, false]) {
  Deno.test(`HEAD: of a NAR ${isStored ? "with" : "without"} a known size, not kept`, async () => {
    const dialect = isStored ? "nixos" : "attic";
    await using upstream = await fakeUpstream({ dialect, objects: [object], stored: isStored });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const nar = await cache.narPath(object.storePathHash);
    await using server = cache.listen();
    const head = await headerLines(server.port, "HEAD", nar);
    assert.deepEqual(head, await headerLines(server.port, "GET", nar));
    await cache.downloadsOver();
  });
}

/** Sorted, as they came over the wire. */
async function headerLines(
  port: number,
  method: "GET" | "HEAD",
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  await using connection = await RawConnection.open(port);
  await connection.send(requestText(method, path, headers));
  const answer = await connection.answer({ isHead: method === "HEAD" });
  const body = await answer.reader.read();
  if (method === "HEAD") assert.equal(body.length, 0);
  const lines = [...answer.headers].filter(([name]) => !VARYING.includes(name));
  return [`${answer.status}`, ...lines.map((line) => line.join(": "))];
}
