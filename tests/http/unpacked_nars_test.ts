import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { corruptByteAt, Gate } from "../support/faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 700_000 });
const { nar, narHash, storePathHash } = object;

/** The NAR's names in binary caches that send it without compression. */
const NAMES = {
  "nix-serve": `/nar/${storePathHash}-${narHash}.nar`,
  "harmonia": `/nar/${narHash}.nar?hash=${storePathHash}`,
} as const;

for (const [cacheName, path] of Object.entries(NAMES)) {
  for (const compression of ["xz", "zstd", "gzip"] as const) {
    Deno.test(`unpacked nar: a name of ${cacheName} gets the NAR of an upstream's ${compression}`, async () => {
      await using upstream = await fakeUpstream({ objects: [object], compression, stored: true });
      await using cache = await TestCache.open({ upstreams: [upstream] });

      const head = await cache.head(path);
      const cold = await cache.get(path);

      assertSameBytes(await cold.bytes(), nar);
      await cache.downloadsOver();
      const warm = await cache.get(path);
      assertSameBytes(await warm.bytes(), nar);
      const origins = [cold, warm].map(({ headers }) => headers.get("x-cache"));
      assert.deepEqual(origins, ["MISS", "HIT"]);
      for (const { status, headers } of [head, cold, warm]) {
        assert.equal(status, 200);
        assert.equal(headers.get("content-length"), String(nar.length));
        assert.equal(headers.get("etag"), `"${narHash}"`);
      }
      assert.equal(upstream.count(/^\/nar\/.*\.nar\./), 2, "HEAD and one GET");
    });
  }
}

Deno.test("unpacked nar: a part is that of the NAR", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const last = nar.length - 1;
  const parts = [[0, 0], [0, last], [5, 70_000], [100_000, last], [last, last]] as const;
  for (const [first, end] of parts) {
    const part = await cache.get(NAMES["nix-serve"], { range: `bytes=${first}-${end}` });
    assert.equal(part.status, 206);
    assertSameBytes(await part.bytes(), nar.subarray(first, end + 1));
  }
});

Deno.test("unpacked nar: of wrong bytes the last ones never leave", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  upstream.breakNar(corruptByteAt(300_000));
  await using server = cache.listen();
  for (const headers of [{}, { Range: "bytes=0-9" }, { Range: `bytes=${nar.length - 1}-` }]) {
    const request = requestText("GET", NAMES["nix-serve"], headers);
    const answer = await rawRequest(server.port, request).catch(() => undefined);
    const isWhole = answer?.complete === true && answer.status < 300;
    assert.equal(isWhole, false, JSON.stringify(headers));
  }
});

Deno.test("unpacked nar: a client begins to read while the file arrives", async () => {
  const gate = new Gate();
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  upstream.breakNar(gate.fault);
  gate.release(400_000);

  const answer = await cache.get(NAMES["nix-serve"]);
  const reader = answer.body?.getReader();
  const first = await reader?.read();
  assert.ok((first?.value?.length ?? 0) > 0);
  gate.open();
  let bytes = first?.value?.length ?? 0;
  for (let read = await reader?.read(); !read?.done; read = await reader?.read()) {
    bytes += read?.value.length ?? 0;
  }
  assert.equal(bytes, nar.length);
});

Deno.test("unpacked nar: a client that leaves gives its decoder back", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await (await cache.get(NAMES["nix-serve"])).bytes();
  await cache.downloadsOver();
  // More than the memory of all decoders at once.
  for (let client = 0; client < 200; client++) {
    const answer = await cache.get(NAMES["nix-serve"]);
    await answer.body?.cancel();
  }
  assertSameBytes(await (await cache.get(NAMES["nix-serve"])).bytes(), nar);
});

Deno.test("unpacked nar: another NAR of the store path is 404", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const other = makeStoreObject({ name: "other" });
  await assertAbsent(cache, upstream, `/nar/${storePathHash}-${other.narHash}.nar`);
  await assertAbsent(cache, upstream, `/nar/${storePathHash}-${narHash}.nar.bz2`);
});

async function assertAbsent(cache: TestCache, upstream: FakeUpstream, path: string): Promise<void> {
  assert.equal((await cache.get(path)).status, 404);
  assert.equal(upstream.count(/^\/nar\/.*\.xz/), 0);
}
