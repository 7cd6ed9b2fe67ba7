import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { corruptByteAt, status } from "../support/faults.ts";
import { type RecordedSpan, RecordedSpans } from "../support/recorded_spans.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 1_000_000 });
const HASH = object.storePathHash;

Deno.test("nar spans: waiting for a NAR that turns out not to be kept is no error", async () => {
  for (const hasFolder of [true, false]) {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    const { tracer, ...spans } = new RecordedSpans();
    await using cache = await TestCache.open({ upstreams: [upstream], tracer, limitBytes: 1_000 });
    const path = await cache.narPath(HASH);
    if (!hasFolder) cache.blockTempFolder();
    const { length } = await (await cache.get(path)).bytes();
    assert.equal(length, (await upstream.narFileOf(object)).bytes.length);
    const errors = spans.list.filter(({ error }) => error !== undefined);
    assert.deepEqual(errors.map(({ name, error }) => [name, error]), []);
  }
});

for (const compression of ["none", "xz"] as const) {
  Deno.test(`nar spans: a NAR of compression ${compression} is verified in a span`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], compression, stored: true });
    const { tracer, ...spans } = new RecordedSpans();
    await using cache = await TestCache.open({ upstreams: [upstream], tracer });
    await (await cache.get(await cache.narPath(HASH))).bytes();
    await cache.downloadsOver();
    const verify = only(spans.list, "verify nar");
    const { "larder.nar.compression": named, "larder.nar.size": size } = verify.facts;
    assert.deepEqual([named, size, verify.error], [compression, object.narSize, undefined]);
    const download = only(spans.list, "download nar");
    assert.equal(verify.span.parentSpanContext?.spanId, download.span.spanContext().spanId);
    assert.equal(download.error, undefined);
  });

  Deno.test(`nar spans: a wrong bit of compression ${compression} is an error`, async () => {
    await using upstream = await fakeUpstream({ objects: [object], compression, stored: true });
    upstream.breakNar(corruptByteAt(9));
    const { tracer, ...spans } = new RecordedSpans();
    await using cache = await TestCache.open({ upstreams: [upstream], tracer });
    await (await cache.get(await cache.narPath(HASH))).bytes().catch(() => undefined);
    await cache.downloadsOver();
    for (const name of ["verify nar", "download nar"]) {
      assert.equal(only(spans.list, name).facts["error.type"], "file_hash", name);
    }
  });

  Deno.test(`nar spans: a wrong NAR of compression ${compression} is an error`, async () => {
    const lie = makeStoreObject({ name: "thing-1.0", size: 1_000_000, seed: 9 });
    await using upstream = await fakeUpstream({ objects: [object], compression, stored: true });
    const { bytes, fileHash } = await upstream.narFileOf(lie);
    upstream.onRequest = async ({ path }) => {
      if (!path.endsWith(".narinfo")) {
        return path.includes("/nar/") ? new Response(bytes) : undefined;
      }
      const text = (await upstream.narinfoOf(object))
        .replace(/^FileHash: .*$/m, `FileHash: sha256:${fileHash}`)
        .replace(/^FileSize: .*$/m, `FileSize: ${bytes.length}`);
      return new Response(text);
    };
    const { tracer, ...spans } = new RecordedSpans();
    await using cache = await TestCache.open({ upstreams: [upstream], tracer });
    await (await cache.get(await cache.narPath(HASH))).bytes().catch(() => undefined);
    await cache.downloadsOver();
    for (const name of ["verify nar", "download nar"]) {
      const { error, facts } = only(spans.list, name);
      assert.deepEqual([error, facts["error.type"]], ["", "nar_hash"], name);
    }
  });
}

Deno.test("nar spans: a download that no upstream serves is an error with its reason", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const { tracer, ...spans } = new RecordedSpans();
  await using cache = await TestCache.open({ upstreams: [upstream], tracer });
  const path = await cache.narPath(HASH);
  upstream.breakNar(status(500));
  assert.equal((await cache.get(path)).status, 404);
  await cache.downloadsOver();
  assert.equal(only(spans.list, "download nar").facts["error.type"], "status");
});

function only(spans: readonly RecordedSpan[], name: string): RecordedSpan {
  const [span, ...more] = spans.filter((one) => one.name === name);
  assert.ok(span && more.length === 0, `one ${name} of ${spans.map((one) => one.name)}`);
  return span;
}
