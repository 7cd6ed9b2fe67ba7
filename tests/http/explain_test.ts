import assert from "node:assert/strict";
import type { Explanation } from "../../src/cache/explain/explanation.ts";
import { PathRecord } from "../../src/cache/nar/store_path_names.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import { generateSecretKey, parsePublicKey } from "../../src/nix/signature.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate, status } from "../support/faults.ts";
import { MemoryNarStore } from "../support/memory_nar_store.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import { chain, makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { StubEncoder } from "../support/stub_encoder.ts";
import { TestCache } from "../support/test_cache.ts";
import { push, pushOf, uploadCache } from "../support/uploading.ts";

const objects = chain(2);
const [leaf, root] = objects as [StoreObject, StoreObject];
const other = makeStoreObject({ name: "other-2.0" });
const ABSENT = "0".repeat(32);

async function explain(cache: TestCache, path: string): Promise<Explanation> {
  const answer = await cache.get(`/explain?path=${encodeURIComponent(path)}`);
  assert.equal(answer.status, 200);
  return await answer.json();
}

async function pull(cache: TestCache, { storePathHash }: StoreObject): Promise<void> {
  await (await cache.get(await cache.narPath(storePathHash))).bytes();
  await cache.downloadsOver();
}

/** The page's answer to a search, as text. */
async function searched(cache: TestCache, query: string): Promise<string> {
  const url = `/?q=${encodeURIComponent(query)}`;
  const html = await (await cache.get(url, { accept: "text/html" })).text();
  const part = /<(ul|div|p) class="[^"]*found">([^]*?)<h3>Pins/.exec(html)?.[2] ?? "";
  return part.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

Deno.test("explain: a stored path is a hit, with its source, signer and pins", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  for (const object of objects) await pull(cache, object);
  await cache.request("POST", `/pin/${root.storePathHash}.narinfo`);

  const told = await explain(cache, leaf.storePath);
  assert.deepEqual([told.verdict, told.name], ["hit", "link-0"]);
  assert.deepEqual(told.narinfo?.upstreams, [upstream.url]);
  assert.deepEqual(told.narinfo?.keys, [upstream.publicKey.split(":")[0]]);
  assert.deepEqual(told.pins, [{ root: root.storePathHash, name: "link-1" }]);
  assert.deepEqual(told.answers.map(({ result }) => result), ["found"]);
  const reasons = told.reasons.join(" ");
  assert.match(
    reasons,
    /is a hit.* fetched its NAR file at .*had its narinfo at .* Eviction spares it: 1 pin reaches/,
  );
  assert.ok(reasons.includes(`from ${upstream.url}.`), reasons);
  assert.deepEqual(told.nar?.from, [upstream.url]);

  await cache.request("DELETE", `/pin/${root.storePathHash}.narinfo`);
  assert.deepEqual((await explain(cache, leaf.storePathHash)).pins, []);
  await eventually("the end of the protection has reached the order of eviction", async () => {
    return ((await explain(cache, leaf.storePathHash)).eviction_rank ?? 0) > 0;
  });
});

Deno.test("explain: of many pins that reach a path four are named, and the others counted", async () => {
  const roots = Array.from(
    { length: 9 },
    (_, index) => makeStoreObject({ name: `system-${index}`, references: [leaf], size: 1_000 }),
  );
  await using upstream = await fakeUpstream({ objects: [...objects, ...roots], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  for (const object of [...objects, ...roots]) await pull(cache, object);
  for (const { storePathHash } of roots) {
    await cache.request("POST", `/pin/${storePathHash}.narinfo`);
  }
  const told = await explain(cache, leaf.storePath);
  assert.equal(told.pins?.length, 9);
  assert.match(
    told.reasons.join(" "),
    /spares it: 9 pins reach it, (system-\d, ){3}system-\d, and 5 more\./,
  );
});

Deno.test("explain: when a path was fetched, used and evicted, pinned or not", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 10_000_000 });
  const beganAt = new Date().toISOString();
  await pull(cache, other);
  const fetched = await explain(cache, other.storePath);
  assert.ok((fetched.nar?.stored_at ?? "") >= beganAt, `${fetched.nar?.stored_at}`);
  await eventually("the use is written", async () => {
    return ((await explain(cache, other.storePath)).used_at ?? "") >= beganAt;
  });
  // Of a pinned path too, which eviction does not list.
  await cache.request("POST", `/pin/${other.storePathHash}.narinfo`);
  assert.ok((await explain(cache, other.storePath)).used_at);
  await cache.request("DELETE", `/pin/${other.storePathHash}.narinfo`);
  await eventually("it is evicted", async () => {
    await (await cache.request("POST", "/gc?target=0")).text();
    return (await explain(cache, other.storePath)).verdict === "not_stored";
  });
  const evicted = await explain(cache, other.storePath);
  assert.ok((evicted.evicted_at ?? "") >= (fetched.nar?.stored_at ?? "?"));
  await pull(cache, other);
  const again = (await explain(cache, other.storePath)).reasons.join(" ");
  assert.match(again, /is a hit.* larder evicted it at .*, and fetched it again since/);
});

Deno.test("page: why was this path not cached? … evicted, or no upstream had it", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  const upstreams = [upstream, "http://127.0.0.1:1"];
  await using cache = await TestCache.open({ upstreams, limitBytes: 10_000_000 });
  assert.match(
    await searched(cache, other.storePath),
    /not here .* larder has sent no upstream a request for it/,
  );
  await pull(cache, other);
  assert.match(await searched(cache, "OTHER"), /other-2\.0/);
  assert.match(await searched(cache, "nothing-like-it"), /No stored path has such a name/);
  for (const bad of ["/nix/store/xyz", "/nix/store/xyz /nix/store/abc"]) {
    const form = /This is no store path: expected \/nix\/store\/HASH-NAME, .* blanks or line ends/;
    assert.match(await searched(cache, bad), form);
  }

  const gone = await cache.request("POST", "/gc?target=0");
  await gone.text();
  const evicted = await searched(cache, other.storePathHash);
  assert.match(evicted, /^ not here other-2\.0 .* the next request is a miss/);
  assert.match(evicted, /larder evicted it at \d{4}-\d\d-\d\d \d\d:\d\d UTC\./);
  assert.match(evicted, / had its narinfo at /);
  assert.match(evicted, /http:\/\/127\.0\.0\.1:1 could not be reached at/);
});

Deno.test("explain: the upstream that sent the file is named, until a restart", async () => {
  using folder = tempFolder();
  await using nars = new MemoryNarStore();
  const path = `${folder.path}/db.sqlite`;
  await using first = await fakeUpstream({ objects: [other], stored: true });
  await using second = await fakeUpstream({ objects: [other], stored: true });
  const upstreams = [first, second];
  {
    await using metadata = new SqliteMetadataStore(await openDatabase(path));
    await using cache = await TestCache.open({ upstreams, metadata, nars });
    await pull(cache, other);
    const told = await explain(cache, other.storePathHash);
    const [sender = ""] = told.nar?.from ?? [];
    assert.equal(told.nar?.from?.length, 1);
    assert.ok(told.reasons.join(" ").includes(`UTC, from ${sender}.`), told.reasons.join(" "));
    await metadata.apply([{
      kind: "put-source",
      narName: told.nar?.name as NarName,
      source: { upstream: "http://third.example", location: "third.nar" },
    }]);
    assert.deepEqual((await explain(cache, other.storePathHash)).nar?.from, [sender]);
  }
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  await using cache = await TestCache.open({ upstreams, metadata, nars });
  const told = await explain(cache, other.storePathHash);
  assert.equal(told.nar?.from, null);
  assert.match(
    told.reasons.join(" "),
    /UTC, from one of: http.*third\.example.*\. Only the larder that fetched it remembers/,
  );
});

Deno.test("explain: a path is in zstd since a time, from its upstream, over a restart", async () => {
  using folder = tempFolder();
  await using nars = new MemoryNarStore();
  const path = `${folder.path}/db.sqlite`;
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  const upstreams = [upstream];
  const recompress = { level: 9, encoder: new StubEncoder() };
  const sentence = "larder keeps its NAR file in zstd since 2026-01-02 17:00 UTC. " +
    `It was fetched at 2026-01-02 12:00 UTC, from ${upstream.url}.`;
  let nowMs = Date.UTC(2026, 0, 2, 12);
  {
    await using metadata = new SqliteMetadataStore(await openDatabase(path));
    const options = { upstreams, metadata, nars, nowMs: () => nowMs, recompress };
    await using cache = await TestCache.open(options);
    await pull(cache, other);
    await cache.downloadsOver();
    nowMs += 5 * 3_600_000;
    await cache.recompress();
    const { reasons } = await explain(cache, other.storePathHash);
    assert.ok(reasons.includes(sentence), reasons.join("\n"));
  }
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  await using cache = await TestCache.open({ upstreams, metadata, nars });
  const { reasons } = await explain(cache, other.storePathHash);
  assert.ok(reasons.includes(sentence), reasons.join("\n"));
});

Deno.test("explain: a path from before a restart has its name after its eviction", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  const options = { upstreams: [upstream], limitBytes: 10_000_000 };
  {
    await using metadata = new SqliteMetadataStore(await openDatabase(path));
    await using cache = await TestCache.open({ ...options, metadata });
    await pull(cache, other);
  }
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  await using cache = await TestCache.open({ ...options, metadata });
  await pull(cache, other);
  await eventually("it is evicted", async () => {
    await (await cache.request("POST", "/gc?target=0")).text();
    return (await explain(cache, other.storePathHash)).verdict === "not_stored";
  });
  assert.equal((await explain(cache, other.storePathHash)).name, "other-2.0");
  assert.match(await searched(cache, "OTHER"), new RegExp(`other-2.0 ${other.storePathHash}`));
});

Deno.test("explain: a path that is not stored has the name that was given", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  assert.equal((await explain(cache, other.storePath)).name, "other-2.0");
  assert.equal((await explain(cache, other.storePathHash)).name, null);
});

Deno.test("explain: a search answers as the page's does", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(other.storePathHash);
  const found = async (query: string) =>
    await (await cache.get(`/explain?q=${encodeURIComponent(query)}`)).json();
  const named = [{ hash: other.storePathHash, name: "other-2.0" }];
  assert.deepEqual(await found("OTHER"), { explanation: null, named });
  assert.equal((await found(other.storePath)).explanation.verdict, "nar_not_stored");
  assert.deepEqual(await found("<img src=x>"), { explanation: null, named: [] });
});

Deno.test("explain: an upstream that was down is named, as it got no request", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  const dead = "http://127.0.0.1:1";
  await using cache = await TestCache.open({ upstreams: [dead, upstream] });
  await eventually("the other upstream is down", async () => {
    await (await cache.get(`/${ABSENT}.narinfo`)).bytes();
    await (await cache.get(`/${leaf.storePathHash}.narinfo`)).bytes();
    await (await cache.get(`/${root.storePathHash}.narinfo`)).bytes();
    return cache.logged("warn").some(({ msg }) => msg === "upstream is down");
  });
  await cache.narinfo(other.storePathHash);

  const reasons = (await explain(cache, other.storePath)).reasons.join(" ");

  assert.match(reasons, /http:\/\/127\.0\.0\.1:1 got no request: it was down at \d{4}-/);
  assert.ok(reasons.includes(`${upstream.url} had its narinfo at `), reasons);
});

Deno.test("search: a path is found by its name after a restart", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  {
    await using metadata = new SqliteMetadataStore(await openDatabase(path));
    await using cache = await TestCache.open({ upstreams: [upstream], metadata });
    await pull(cache, other);
  }
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  await using cache = await TestCache.open({ upstreams: [upstream], metadata });
  assert.match(await searched(cache, "OTHER"), new RegExp(`other-2.0 ${other.storePathHash}`));
});

Deno.test("explain: absences, untrusted answers and lost files have their own words", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.get(`/${ABSENT}.narinfo`);
  const absent = await explain(cache, ABSENT);
  assert.equal(absent.verdict, "absent");
  assert.match(absent.reasons.join(" "), /gets 404 for now.* did not have it at/);

  await cache.narinfo(other.storePathHash);
  const promised = await explain(cache, other.storePathHash);
  assert.deepEqual([promised.verdict, promised.nar?.is_stored], ["nar_not_stored", false]);

  await using untrusting = await TestCache.open({ upstreams: [upstream], trustedKeys: [] });
  await untrusting.get(`/${other.storePathHash}.narinfo`);
  const untrusted = await explain(untrusting, other.storePathHash);
  assert.match(
    untrusted.reasons.join(" "),
    /had it at [^,]+ UTC, but no trusted key signs it: set --cache-upstream-public-key\./,
  );
});

Deno.test("explain: a download that runs is told with its sender, its bytes, and that requests join it", async () => {
  const big = makeStoreObject({ name: "big-1.0", size: 600_000 });
  await using upstream = await fakeUpstream({ objects: [big], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(big.storePathHash);
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  gate.release(200_000);
  const pulled = cache.get(path);
  await eventually("a part of it is here", async () => {
    return ((await explain(cache, big.storePathHash)).nar?.download?.received_bytes ?? 0) > 0;
  });

  const { verdict, nar, reasons } = await explain(cache, big.storePathHash);
  assert.deepEqual([verdict, nar?.download?.from], ["downloading", [upstream.url]]);
  const text = reasons.join(" ");
  assert.match(text, /downloads its NAR file now\. The next request for the NAR joins/);
  assert.match(text, /KiB of 58\d\.\d KiB are here, from http/);
  assert.doesNotMatch(text, /is a miss|came at/);
  assert.match(await searched(cache, big.storePathHash), /^ downloading big-1\.0/);
  gate.open();
  await (await pulled).bytes();
  await cache.downloadsOver();
  assert.equal((await explain(cache, big.storePathHash)).verdict, "hit");
});

Deno.test("explain: a use by larder's own commands is no client's, before and after a client's", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const use = async (headers: Readonly<Record<string, string>>) => {
    const path = await cache.narPath(other.storePathHash, headers);
    await (await cache.get(path, headers)).bytes();
    await cache.downloadsOver();
    return await explain(cache, other.storePathHash);
  };
  const ofCommand =
    /A command such as larder warm asked for it last at .* UTC, and no client since\./;

  const warmed = await use({ "x-larder-command": "1" });
  assert.equal(warmed.used_by, "command");
  assert.match(warmed.reasons.join(" "), ofCommand);
  assert.doesNotMatch(warmed.reasons.join(" "), /A client used/);
  await use({});
  await eventually("the use of the client is written", async () => {
    const { used_by, reasons } = await explain(cache, other.storePath);
    return used_by === "client" && /A client used it last at/.test(reasons.join(" "));
  });
  assert.match((await use({ "x-larder-command": "1" })).reasons.join(" "), ofCommand);
});

Deno.test("explain: who used a path before the start of larder is unknown", () => {
  let nowMs = 1_000;
  const record = new PathRecord(() => nowMs);
  assert.equal(record.userAt(999, [leaf.storePathHash]), undefined);
  assert.equal(record.userAt(1_000, [leaf.storePathHash]), "client");
  nowMs = 2_000;
  record.usedByCommand(leaf.storePathHash);
  assert.equal(record.userAt(2_000, [leaf.storePathHash]), "command");
  assert.equal(record.userAt(2_001, [leaf.storePathHash]), "client");
});

Deno.test("explain: a NAR that no upstream sent has their statuses and the time", async () => {
  await using first = await fakeUpstream({ objects: [other], stored: true });
  await using second = await fakeUpstream({ objects: [other], stored: true });
  const upstreams = [first, second];
  await using cache = await TestCache.open({ upstreams });
  const path = await cache.narPath(other.storePathHash);
  first.breakNar(status(500));
  second.breakNar(status(503));
  const answer = await cache.get(path);
  await answer.bytes();
  assert.equal(answer.status, 404);

  const told = await explain(cache, other.storePathHash);
  assert.equal(told.unstored?.reason, "not_sent");
  const reasons = told.reasons.join(" ");
  assert.match(reasons, /The last NAR request failed at .*: no upstream sent the whole file\./);
  for (const [code, { url }] of [[500, first], [503, second]] as const) {
    const told = `To the NAR request, ${url} answered with HTTP status ${code} at`;
    assert.ok(reasons.includes(told), reasons);
  }
  assert.match(await searched(cache, other.storePathHash), /The last NAR request failed at/);
  const [line, ...others] = cache.logged("warn").filter(({ msg }) => msg === "nar not fetched");
  assert.deepEqual([line?.["reason"], others], ["status", []]);
  assert.match(String(line?.["status"]), /^50[03]$/);
});

Deno.test("explain: a NAR that does not fit has its size, the limit and the pins", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 100 });
  await pull(cache, other);
  const told = await explain(cache, other.storePathHash);
  const { reason, limit_bytes } = told.unstored ?? {};
  assert.deepEqual([reason, limit_bytes], ["no_room", 100]);
  const reasons = told.reasons.join(" ");
  assert.match(
    reasons,
    /could not store its NAR file at .*: there was no room for .*B\./,
  );
  assert.match(
    reasons,
    /The limit is 100 B \(--cache-max-size\), and pins keep 0 B\. .* passes through to each client/,
  );
});

Deno.test("explain: why a NAR was not stored outlives its narinfo's eviction", async () => {
  const big = makeStoreObject({ name: "big-1.0", size: 200_000 });
  const small = makeStoreObject({ name: "small-1.0", size: 1_000 });
  await using upstream = await fakeUpstream({ objects: [big, small], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 100_000 });
  for (const object of [big, small]) await pull(cache, object);
  await eventually("both are evicted", async () => {
    await (await cache.request("POST", "/gc?target=0")).text();
    return (await explain(cache, big.storePathHash)).evicted_at !== null &&
      (await explain(cache, small.storePathHash)).evicted_at !== null;
  });
  const refused = (await explain(cache, big.storePathHash)).reasons.join(" ");
  assert.match(refused, /no room for .*KiB\..* evicted its narinfo at .*was not there then\./);
  const evicted = (await explain(cache, small.storePathHash)).reasons.join(" ");
  assert.match(evicted, /larder evicted it at .*UTC\./);
});

Deno.test("explain: an upstream's error has its HTTP status", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  upstream.breakNarinfo(status(503));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await (await cache.get(`/${other.storePathHash}.narinfo`)).bytes();
  const told = await explain(cache, other.storePathHash);
  assert.equal(told.answers[0]?.status, 503);
  assert.ok(told.reasons.join(" ").includes(`${upstream.url} answered with HTTP status 503 at`));
});

Deno.test("explain: no store path is 400, and a broken database is said", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (const path of ["", "hello", "/etc/passwd", "../x"]) {
    const answer = await cache.get(`/explain?path=${encodeURIComponent(path)}`);
    assert.equal(answer.status, 400, path);
  }
  assert.match(await searched(cache, "<img src=x>"), /No stored path has such a name/);
  await cache.metadata[Symbol.asyncDispose]();
  for (const query of [other.storePath, "other"]) {
    assert.match(await searched(cache, query), /The database cannot be read/);
    assert.equal((await cache.get(`/explain?q=${encodeURIComponent(query)}`)).status, 503);
  }
});

Deno.test("explain: each signature is verified, wrong or of an unknown key", async () => {
  await using upstream = await fakeUpstream({ objects: [other], stored: true });
  const known = generateSecretKey("cache.nixos.org-1");
  const forged = `${known.name}:${new Uint8Array(64).toBase64()}`;
  const strange = generateSecretKey("strange-1").sign("anything").text;
  upstream.breakNarinfo(rewritten((text) => `${text}Sig: ${forged}\nSig: ${strange}\n`));
  const trustedKeys = [parsePublicKey(upstream.publicKey), known.publicKey];
  await using cache = await TestCache.open({ upstreams: [upstream], trustedKeys });
  await cache.narinfo(other.storePathHash);

  const told = await explain(cache, other.storePath);

  const [name = ""] = upstream.publicKey.split(":");
  assert.deepEqual(told.narinfo?.signatures, [
    { key: name, check: "verified" },
    { key: "cache.nixos.org-1", check: "wrong" },
    { key: "strange-1", check: "unknown key" },
  ]);
  assert.deepEqual(told.narinfo?.keys, [name]);
  const reasons = told.reasons.join(" ");
  assert.ok(reasons.includes(`Its narinfo is signed by ${name}: verified.`), reasons);
  assert.match(reasons, /It has a signature of an unknown key: strange-1\./);
  assert.match(reasons, /It has a wrong signature: cache\.nixos\.org-1 did not sign it, though/);
});

Deno.test("explain: an uploaded path speaks of no upstream, and of no key that is missing", async () => {
  await using cache = await uploadCache();
  const pushed = makeStoreObject({ name: "pushed" });
  await push(cache, await pushOf(pushed));
  const { reasons } = await explain(cache, pushed.storePathHash);
  assert.ok(reasons.some((one) => /^Its NAR file was uploaded or imported at /.test(one)));
  assert.ok(
    reasons.includes("Its narinfo needs no key of an upstream, as it was uploaded or imported."),
  );
  assert.doesNotMatch(reasons.join(" "), /upstreams said|no trusted key/);
});
