import assert from "node:assert/strict";
import { fingerprintOf } from "../../src/nix/fingerprint.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { generateSecretKey, parsePublicKey } from "../../src/nix/signature.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rewritten, withoutLine } from "../support/narinfo_faults.ts";
import { nextAnswer } from "../support/next_answer.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const library = makeStoreObject({ name: "library-1.0" });
const program = makeStoreObject({
  name: "program-2.0",
  references: [library],
  selfReference: true,
  deriver: true,
});
const PATH = `/${program.storePathHash}.narinfo`;
const stored = { objects: [program], stored: true } as const;

Deno.test("narinfo: a miss asks the upstream once, then it is a hit without it", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });

  const miss = await cache.get(PATH);
  const text = await miss.text();
  await upstream.stop();
  const hit = await cache.get(PATH);

  assert.deepEqual([miss.status, miss.headers.get("x-cache")], [200, "MISS"]);
  assert.deepEqual([hit.status, hit.headers.get("x-cache")], [200, "HIT"]);
  assert.equal(await hit.text(), text);
  assert.equal(hit.headers.get("content-type"), "text/x-nix-narinfo");
  assert.equal(upstream.count(PATH), 1);
});

Deno.test("narinfo: the NAR is not fetched before its own request", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(program.storePathHash);
  assert.equal(upstream.count(/^\/nar\//), 0);
});

Deno.test("narinfo: many requests at once are one request to the upstream", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });

  const responses = await Promise.all(Array.from({ length: 50 }, () => cache.get(PATH)));

  const texts = new Set(await Promise.all(responses.map((response) => response.text())));
  assert.equal(texts.size, 1);
  assert.equal(upstream.count(PATH), 1);
  const sources = responses.map((response) => response.headers.get("x-cache"));
  assert.deepEqual(sources.toSorted(), [...Array(49).fill("JOINED"), "MISS"]);
});

Deno.test("narinfo: one found absent while a request reads its row is queried once", async () => {
  await using upstream = await fakeUpstream({ objects: [] });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const slow = nextAnswer(cache.metadata, "findNarinfo");
  const early = cache.get(PATH);
  await slow.read;
  const miss = await cache.get(PATH);
  slow.release();
  const known = await early;
  assert.deepEqual([miss, known].map(({ status }) => status), [404, 404]);
  assert.deepEqual([miss, known].map(({ headers }) => headers.get("x-cache")), ["MISS", "HIT"]);
  assert.equal(upstream.count(PATH), 1);
});

Deno.test("narinfo: signed by the upstream and by us, signed fields as they were", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });

  const served = parseNarinfo(await cache.narinfo(program.storePathHash));
  const original = parseNarinfo(await upstream.narinfoOf(program));

  assert.equal(fingerprintOf(served), fingerprintOf(original));
  assert.equal(served.signatures.length, 2);
  for (const key of [parsePublicKey(upstream.publicKey), cache.secretKey.publicKey]) {
    assert.equal(new TrustedKeys([key]).signerOf(served), key);
  }
});

Deno.test("narinfo: unknown fields and every other line are kept, but for the URL", async () => {
  const more = `X-Future: some value\nCA: fixed:r:sha256:${"0".repeat(52)}\n`;
  await using upstream = await fakeUpstream(stored);
  upstream.breakNarinfo(rewritten((text) => text + more));
  await using cache = await TestCache.open({ upstreams: [upstream] });

  const served = (await cache.narinfo(program.storePathHash)).split("\n");

  const original = `${await upstream.narinfoOf(program)}${more}`;
  for (const line of original.split("\n")) {
    if (!line.startsWith("URL:")) assert.ok(served.includes(line), line);
  }
  assert.ok(served.at(-1) === "", "the last line is ended");
});

Deno.test("narinfo: an unreadable signature is left out of what clients get", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNarinfo(rewritten((text) => `${text}Sig: odd\nSig: odd:AAAA\n`));
  await using cache = await TestCache.open({ upstreams: [upstream] });

  const served = await cache.narinfo(program.storePathHash);

  assert.doesNotMatch(served, /odd/);
  assert.equal(served.match(/^Sig: /gm)?.length, 2, "the upstream's, and ours");
});

Deno.test("narinfo: signatures that an upstream adds later arrive a day later, once asked", async () => {
  let nowMs = 1e12;
  const later = generateSecretKey("later-1");
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => nowMs });
  const path = `/${program.storePathHash}.narinfo`;
  await (await cache.get(await cache.narPath(program.storePathHash))).bytes();
  await cache.downloadsOver();
  upstream.breakNarinfo(rewritten((text) => {
    const { text: signature } = later.sign(fingerprintOf(parseNarinfo(text)));
    return `${text.replace(/^Deriver: .*\n/m, "")}Sig: ${signature}\n`;
  }));
  const before = await cache.narinfo(program.storePathHash);
  nowMs += 24 * 3_600_000;
  assert.equal(await cache.narinfo(program.storePathHash), before);
  assert.equal(upstream.count(path), 1, "a day is not over");

  nowMs++;
  const answers = await Promise.all([1, 2, 3].map(() => cache.narinfo(program.storePathHash)));
  assert.deepEqual(answers, [before, before, before], "nobody waits");

  await eventually(
    "the new signature is served",
    async () => (await cache.narinfo(program.storePathHash)).includes("later-1:"),
  );
  const after = await cache.narinfo(program.storePathHash);
  assert.equal(after.replace(/^Sig: later-1:.*\n/m, ""), before, "nothing else has changed");
  assert.equal(upstream.count(path), 2);
  assert.equal((await cache.get(path)).headers.get("x-cache"), "HIT");
});

Deno.test("narinfo: with a refresh of 0 no narinfo is asked for again", async () => {
  let nowMs = 1e12;
  await using upstream = await fakeUpstream(stored);
  const options = { upstreams: [upstream], nowMs: () => nowMs, narinfoRefreshMs: 0 };
  await using cache = await TestCache.open(options);
  await (await cache.get(await cache.narPath(program.storePathHash))).bytes();
  await cache.downloadsOver();
  nowMs += 1e10;
  for (let count = 0; count < 3; count++) await cache.narinfo(program.storePathHash);
  assert.equal(upstream.count(`/${program.storePathHash}.narinfo`), 1);
});

Deno.test("narinfo: one with an unreadable CA is refused, and another upstream's served", async () => {
  await using odd = await fakeUpstream({ ...stored, priority: 10 });
  odd.breakNarinfo(rewritten((text) => `${text}CA: fixed:r:sha256:x\n`));
  await using alone = await TestCache.open({ upstreams: [odd] });
  assert.equal((await alone.get(`/${program.storePathHash}.narinfo`)).status, 404);

  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [odd, upstream] });
  assert.doesNotMatch(await cache.narinfo(program.storePathHash), /^CA: /m);
});

Deno.test("narinfo: a missing compression is bzip2, and then said", async () => {
  await using upstream = await fakeUpstream({ ...stored, dialect: "nix-serve" });
  upstream.breakNarinfo(withoutLine("Compression"));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const served = await cache.narinfo(program.storePathHash);
  assert.match(served, /^Compression: bzip2$/m);
  assert.match(served, /^URL: nar\/[0-9a-z]{52}\.nar\.bz2$/m);
});

Deno.test("narinfo: HEAD answers like GET", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(program.storePathHash);
  await using server = cache.listen();

  const [get, head] = await Promise.all(
    ["GET", "HEAD"].map((method) => fetch(server.url + PATH, { method })),
  );

  assert.equal(await head?.text(), "");
  assert.equal(Number(head?.headers.get("content-length")), (await get?.bytes())?.length);
  assert.deepEqual(comparable(head), comparable(get));
});

Deno.test("narinfo: an invalid store path hash is 404, with no upstream request", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const { storePathHash: hash } = program;
  for (const odd of ["", "x", hash.slice(1), `${hash}0`, `e${hash.slice(1)}`, hash.toUpperCase()]) {
    assert.equal((await cache.get(`/${odd}.narinfo`)).status, 404, odd);
  }
  assert.equal(upstream.count(/narinfo$/), 0);
});

Deno.test("narinfo: without a key of ours it is as the upstream signed it", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], secretKey: undefined });
  assert.equal(parseNarinfo(await cache.narinfo(program.storePathHash)).signatures.length, 1);
});

Deno.test("narinfo: a kept one is signed by the key of today", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(program.storePathHash);
  const row = await cache.metadata.findNarinfo(program.storePathHash);
  assert.ok(row);
  const nar = await cache.metadata.findNar(row.narName);
  assert.ok(nar);
  const foreign = { publicKey: "larder.test:other", text: "larder.test:c2ln" };
  await cache.metadata.apply([{
    kind: "put-narinfo",
    row: { ...row, ownSignature: foreign },
    references: [],
    nar,
    sources: [],
    atMs: 0,
  }]);

  const served = parseNarinfo(await cache.narinfo(program.storePathHash));

  const signer = new TrustedKeys([cache.secretKey.publicKey]).signerOf(served);
  assert.equal(signer, cache.secretKey.publicKey);
});

function comparable(response: Response | undefined): unknown {
  const varying = ["date", "x-request-id"];
  return [...response?.headers ?? []].filter(([name]) => !varying.includes(name));
}
