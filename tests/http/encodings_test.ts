import assert from "node:assert/strict";
import { SYSTEM_RUNTIME } from "../../src/runtime/runtime.ts";
import type { Threads } from "../../src/runtime/threads.ts";
import { encodedAs, READ_ENCODINGS } from "../support/encoded_answers.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "n5glp21rsz314qssw9fbvfswgy3kc68f";
const DRV = `${HASH}-hello-2.12.1.drv`;
const LISTING = `/${HASH}.ls`;
const LOG = `/log/${DRV}`;
const REALISATION = `/realisations/sha256:${"0f".repeat(32)}!out.doi`;

/** One of each kind. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  [LISTING]: '{"version":1,"root":{"type":"directory","entries":{}}}',
  [LOG]: "unpacking sources\ndone: \u00e4\n",
  [`/build-trace-v2/${DRV}/out.doi`]: '{"outPath":"x","signatures":["k:c2ln"]}\n',
  [REALISATION]: '{"id":"x","outPath":"y"}',
  [`/debuginfo/${"bd".repeat(20)}`]: '{"archive":"../nar/x.nar.xz","member":"lib/debug/x.debug"}',
};

const objects = Array.from({ length: 8 }, (_, seed) => makeStoreObject({ name: "thing", seed }));

for (const { title, missing, fault } of READ_ENCODINGS) {
  testUnless(
    missing,
    `encodings: a narinfo in ${title} is read, alone and in a crowd`,
    async () => {
      await using upstream = await fakeUpstream({ objects, stored: true });
      upstream.breakNarinfo(fault);
      await using cache = await TestCache.open({ upstreams: [upstream] });
      const [first, ...others] = objects;
      assert.ok(first);
      const answer = await cache.get(await cache.narPath(first.storePathHash));
      assert.equal(answer.status, 200);
      await answer.bytes();
      await Promise.all(others.map(({ storePathHash }) => cache.narinfo(storePathHash)));
    },
  );

  testUnless(
    missing,
    `encodings: documents of each kind in ${title} are read, and kept plain`,
    async () => {
      await using upstream = await fakeUpstream({ documents: DOCUMENTS });
      upstream.breakDocument(fault);
      await using cache = await TestCache.open({ upstreams: [upstream] });
      for (const [path, text] of Object.entries(DOCUMENTS)) {
        for (const source of ["MISS", "HIT"]) {
          const answer = await cache.get(path);
          assert.deepEqual([answer.status, answer.headers.get("x-cache")], [200, source]);
          assert.equal(answer.headers.get("content-encoding"), null);
          assert.equal(await answer.text(), text);
        }
      }
      assert.deepEqual(cache.logged("warn"), []);
    },
  );
}

// It is read as a narinfo is.
for (const { title, missing, fault } of READ_ENCODINGS.slice(-3)) {
  testUnless(missing, `encodings: nix-cache-info in ${title} is read`, async () => {
    const both = { objects: objects.slice(0, 1), stored: true };
    await using upstream = await fakeUpstream({
      ...both,
      onRequest: async (request) => {
        if (request.path !== "/nix-cache-info") return undefined;
        const text = "StoreDir: /nix/store\nPriority: 7\n";
        const plain = { status: 200, headers: new Headers(), body: new TextEncoder().encode(text) };
        const answer = await fault({ ...plain, framing: text.length }, request);
        if (typeof answer !== "object") return undefined;
        return new Response(answer.body as BodyInit, { headers: answer.headers });
      },
    });
    // A lone upstream's priority would be of no use.
    await using other = await fakeUpstream(both);
    await using cache = await TestCache.open({ upstreams: [upstream, other] });
    await cache.narinfo(objects[0]?.storePathHash ?? "");
    await eventually("its priority is known", async () => {
      const { upstreams } = await (await cache.get("/stats")).json();
      return upstreams[0].priority === 7;
    });
  });
}

Deno.test("encodings: the thread that answers decodes nothing", async () => {
  const decoded: string[] = [];
  const threads: Threads = {
    start(program, permissions) {
      const thread = SYSTEM_RUNTIME.threads.start(program, permissions);
      const post = thread.postMessage.bind(thread);
      thread.postMessage = (message: { type?: string; order?: { compression?: string } }) => {
        if (message.type === "decode") decoded.push(String(message.order?.compression));
        post(message);
      };
      return thread;
    },
  };
  await using upstream = await fakeUpstream({ objects, documents: DOCUMENTS, stored: true });
  const runtime = { ...SYSTEM_RUNTIME, threads };
  await using cache = await TestCache.open({ upstreams: [upstream], runtime });
  upstream.breakNarinfo(encodedAs({ name: "x-gzip", codecs: ["gzip"] }));
  upstream.breakDocument(encodedAs({ name: undefined, codecs: ["xz"] }));
  await cache.narinfo(objects[0]?.storePathHash ?? "");
  await (await cache.get(LOG)).bytes();
  assert.deepEqual(decoded, ["gzip", "xz"]);
});

Deno.test("encodings: an unknown one is named in the log, with a remedy", async () => {
  await using upstream = await fakeUpstream({ objects, documents: DOCUMENTS, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const unknown = encodedAs({ name: "gzip, Snappy", codecs: [] });
  upstream.breakNarinfo(unknown);
  upstream.breakDocument(unknown);
  assert.equal((await cache.get(`/${objects[0]?.storePathHash}.narinfo`)).status, 404);
  const [line] = cache.logged("warn");
  assert.match(String(line?.["detail"]), /Content-Encoding.*"Snappy"/);
  assert.match(String(line?.["hint"]), /gzip, deflate, br, zstd, xz, bzip2/);
  // A client may know it.
  const answer = await cache.get(LISTING);
  assert.equal(answer.headers.get("content-encoding"), "gzip, snappy");
  assert.equal(cache.logged("warn").at(-1)?.["encoding"], "gzip, snappy");
  await answer.bytes();
});

Deno.test("encodings: bytes that only begin as a compressed file are taken as they are", async () => {
  const broken = (bytes: Uint8Array<ArrayBuffer>) => new Uint8Array([...bytes.subarray(0, 20)]);
  await using upstream = await fakeUpstream({ documents: DOCUMENTS });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  upstream.breakDocument(async (answer, exchange) => {
    const encoded = await encodedAs({ name: undefined, codecs: ["xz"] })(answer, exchange);
    if (typeof encoded !== "object") return encoded;
    const body = broken(await new Response(encoded.body as BodyInit).bytes());
    return { ...encoded, body, framing: body.length };
  });
  assert.equal((await cache.get(LISTING)).status, 404);
  const log = await cache.get(LOG);
  assert.equal(log.headers.get("content-encoding"), null);
  assert.equal((await log.bytes()).length, 20);
});

testUnless(
  programsMissing("xz"),
  "encodings: what unpacks to more than its kind may have is bounded",
  async () => {
    const mib = 1 << 20;
    const documents = {
      [LISTING]: `{"x":"${"a".repeat(17 * mib)}"}`,
      [REALISATION]: `{"x":"${"a".repeat(2 * mib)}"}`,
    };
    const [object] = objects;
    assert.ok(object);
    await using upstream = await fakeUpstream({ objects, documents });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    for (const name of [undefined, "xz"]) {
      const fault = encodedAs({ name, codecs: ["xz"] });
      upstream.breakDocument(fault);
      upstream.breakNarinfo(async (answer, exchange) => {
        const text = await new Response(answer.body as BodyInit).text();
        const body = new TextEncoder().encode(`${text}X: ${"x".repeat(3 * mib)}\n`);
        return await fault({ ...answer, body }, exchange);
      });
      assert.equal((await cache.get(`/${object.storePathHash}.narinfo`)).status, 404);
      assert.equal((await cache.get(REALISATION)).status, 404);
      // A large listing goes on as it came, under its name.
      const listing = await cache.get(LISTING);
      assert.equal(listing.headers.get("content-encoding"), "xz");
      assert.ok((await listing.bytes()).length < mib);
      upstream.mend();
    }
  },
);
