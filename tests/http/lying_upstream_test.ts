import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

// The liar signs nothing: it forwards narinfos that the honest upstream's key has signed, and
// changes the fields that the signature does not cover.

const victim = makeStoreObject({ name: "victim-1.0", size: 50_000 });
const first = makeStoreObject({ name: "first-1.0", size: 20_000 });
const second = makeStoreObject({ name: "second-1.0", size: 30_000 });

interface Scene extends AsyncDisposable {
  readonly honest: FakeUpstream;
  readonly liar: FakeUpstream;
  readonly cache: TestCache;
}

/** The liar comes first and has the public narinfos of `bait`, with `lines` for their own. */
async function scene(
  bait: ReadonlyMap<StoreObject, Readonly<Record<string, string>>>,
  compression: "xz" | "none" = "xz",
): Promise<Scene> {
  const honest = await fakeUpstream({ objects: [victim], stored: true, compression });
  const liar = await fakeUpstream({ stored: true, priority: 1, key: "none", compression });
  liar.onRequest = async ({ path }) => {
    for (const [object, lines] of bait) {
      if (path !== `/${object.storePathHash}.narinfo`) continue;
      let text = await honest.narinfoOf(object);
      for (const [key, value] of Object.entries(lines)) {
        text = text.replace(new RegExp(`^${key}: .*$`, "m"), `${key}: ${value}`);
      }
      return new Response(text);
    }
    return undefined;
  };
  const cache = await TestCache.open({ upstreams: [liar, honest] });
  return {
    honest,
    liar,
    cache,
    async [Symbol.asyncDispose]() {
      await cache[Symbol.asyncDispose]();
      await liar[Symbol.asyncDispose]();
      await honest[Symbol.asyncDispose]();
    },
  };
}

function lineOf(key: string, text: string): string {
  return new RegExp(`^${key}: (.*)$`, "m").exec(text)?.[1] ?? "";
}

/** Whether a client gets the victim's narinfo and its NAR. */
async function assertServed({ cache, honest }: Scene): Promise<void> {
  const path = await cache.narPath(victim.storePathHash);
  const answer = await cache.get(path);
  assert.equal(answer.status, 200);
  assertSameBytes(await answer.bytes(), (await honest.narFileOf(victim)).bytes);
  await cache.downloadsOver();
  assert.equal((await cache.get(path)).headers.get("x-cache"), "HIT");
}

for (const compression of ["xz", "none"] as const) {
  Deno.test(`liar: false file hashes block no other path's NAR (${compression})`, async () => {
    await using honest = await fakeUpstream({ objects: [victim], stored: true, compression });
    const text = await honest.narinfoOf(victim);
    await using made = await scene(
      new Map([
        [first, { FileHash: lineOf("FileHash", text) }],
        [second, { FileHash: lineOf("NarHash", text) }],
      ]),
      compression,
    );
    for (const { storePathHash } of [first, second]) await made.cache.narinfo(storePathHash);

    await assertServed(made);
  });

  Deno.test(`liar: a later false file hash takes no NAR's name (${compression})`, async () => {
    await using honest = await fakeUpstream({ objects: [victim], stored: true, compression });
    const text = await honest.narinfoOf(victim);
    await using made = await scene(
      new Map([[first, { FileHash: lineOf("FileHash", text) }]]),
      compression,
    );
    const path = await made.cache.narPath(victim.storePathHash);
    await made.cache.narinfo(first.storePathHash);
    assert.notEqual(await made.cache.narPath(first.storePathHash), path);

    await assertServed(made);
  });
}

Deno.test("liar: a file hash that is another path's NAR hash blocks nothing", async () => {
  await using honest = await fakeUpstream({ objects: [victim], stored: true });
  const text = await honest.narinfoOf(victim);
  await using made = await scene(new Map([[first, { FileHash: lineOf("NarHash", text) }]]));
  made.honest.breakNarinfo(rewritten((narinfo) => narinfo.replace(/^File.*\n/gm, "")), victim);
  await made.cache.narinfo(first.storePathHash);

  await assertServed(made);
});

for (const FileSize of ["1", "999999999"]) {
  Deno.test(`liar: a file size of ${FileSize} for a path spoils no other path's NAR`, async () => {
    // The same NAR under another store path, as content-addressed and renamed paths have it.
    const twin = makeStoreObject({ name: "twin-1.0", size: 50_000 });
    for (const order of [[twin], [victim, twin]]) {
      await using made = await scene(new Map([[twin, { FileSize }]]));
      for (const { storePathHash } of order) await made.cache.narinfo(storePathHash);

      await assertServed(made);
    }
  });

  Deno.test(`liar: a file size of ${FileSize} hides an evicted path once at most`, async () => {
    const lies = new Map<StoreObject, Readonly<Record<string, string>>>();
    await using made = await scene(lies);
    await assertServed(made);
    await made.cache.evict(victim.storePathHash);
    lies.set(victim, { FileSize });
    await (await made.cache.get(await made.cache.narPath(victim.storePathHash))).body?.cancel();
    await made.cache.downloadsOver();

    await assertServed(made);
  });
}

for (const FileSize of ["1", "999999999"]) {
  Deno.test(`liar: a file size of ${FileSize} changes no narinfo that a client has`, async () => {
    const lies = new Map<StoreObject, Readonly<Record<string, string>>>();
    await using made = await scene(lies);
    const { cache, honest } = made;
    const { storePathHash } = victim;
    const path = await cache.narPath(storePathHash);
    await cache.metadata.apply([{ kind: "remove-narinfo", storePathHash }]);
    lies.set(victim, { FileSize });
    made.liar.add(victim);
    await cache.narinfo(storePathHash);

    const range = "bytes=10000-";
    const { bytes } = await honest.narFileOf(victim);
    const facts = await cache.head(path, { range });
    const length = `${bytes.length - 10_000}`;
    assert.deepEqual([facts.status, facts.headers.get("content-length")], [206, length]);
    const rest = await cache.get(path, { range });
    assert.equal(rest.status, 206);
    assert.equal(Buffer.compare(await rest.bytes(), bytes.subarray(10_000)), 0);
  });
}

Deno.test("liar: a compression, URL, deriver or CA that lies spoils no other path", async () => {
  await using made = await scene(
    new Map([
      [first, { Compression: "none", Deriver: victim.storePathHash + "-victim-1.0.drv" }],
      [second, { URL: `nar/${"0".repeat(52)}.nar.xz`, CA: `fixed:r:sha256:${"0".repeat(52)}` }],
    ]),
  );
  for (const { storePathHash } of [first, second]) {
    await (await made.cache.get(await made.cache.narPath(storePathHash))).body?.cancel();
  }

  await assertServed(made);
});

Deno.test("liar: a false file hash of a NAR that is passed through is found out", async () => {
  await using honest = await fakeUpstream({ objects: [victim, first], stored: true });
  const text = await honest.narinfoOf(victim);
  const { bytes } = await honest.narFileOf(victim);
  await using liar = await fakeUpstream({ stored: true, priority: 1, key: "none" });
  liar.onRequest = async ({ path }) => {
    if (path.startsWith("/nar/")) return new Response(bytes);
    if (path !== `/${first.storePathHash}.narinfo`) return undefined;
    return new Response(
      (await honest.narinfoOf(first))
        .replace(/^FileHash: .*$/m, `FileHash: ${lineOf("FileHash", text)}`)
        .replace(/^FileSize: .*$/m, `FileSize: ${bytes.length}`),
    );
  };
  const upstreams = [liar, honest];
  await using cache = await TestCache.open({ upstreams, limitBytes: 1_000 });
  const right = (await honest.narFileOf(first)).bytes;
  const pull = async () => {
    const answer = await cache.get(await cache.narPath(first.storePathHash));
    return Buffer.compare(await answer.bytes(), right) === 0;
  };

  assert.equal(await pull(), false, "the liar comes first");

  await eventually("the path comes from the other upstream", pull);
  const told = cache.logged("error").find(({ msg }) => msg === "nar verification failed");
  assert.equal(told?.["upstream"], liar.url);
});

Deno.test("liar: a debuginfo document without its NAR does not hide another one's", async () => {
  await using honest = await fakeUpstream({ objects: [victim], stored: true });
  const archive = `../${await honest.narUrlOf(victim)}`;
  const document = JSON.stringify({ archive, member: "lib/debug/x.debug" });
  const [mine, other] = ["a", "b"].map((digit) => `/debuginfo/${digit.repeat(40)}`) as [
    string,
    string,
  ];
  await using upstream = await fakeUpstream({
    objects: [victim],
    stored: true,
    documents: { [other]: document },
  });
  await using liar = await fakeUpstream({ documents: { [mine]: document }, priority: 1 });
  await using cache = await TestCache.open({ upstreams: [liar, upstream] });
  for (const path of [mine, other]) assert.equal((await cache.get(path)).status, 200);

  const answer = await cache.get(`/nar/${archive.slice("../nar/".length)}`);

  assert.equal(answer.status, 200);
  assertSameBytes(await answer.bytes(), (await upstream.narFileOf(victim)).bytes);
});
