import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import {
  chunked,
  closeDelimited,
  corruptByteAt,
  cutAfter,
  endAfter,
  type Fault,
  fileFault,
  firstTimes,
  followedBy,
  inOrder,
  stallAfter,
  status,
} from "../support/faults.ts";
import { withoutLine, wrongFileHash, wrongFileSize } from "../support/narinfo_faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 1_000_000 });
const HASH = object.storePathHash;

/** Bodies that differ from the NAR file that the narinfo announced. */
const BROKEN: Readonly<Record<string, Fault>> = {
  "a corrupt first byte": corruptByteAt(0),
  "a corrupt byte in the middle": corruptByteAt(500_000),
  "nothing beyond its middle": fileFault(cutAfter, 500_000),
  "a clean end in its middle": fileFault(endAfter, 500_000),
  "a stall in its middle": fileFault(stallAfter, 500_000),
  "bytes too many": followedBy(new Uint8Array(10)),
};

for (const dialect of ["nixos", "attic", "harmonia", "nix-serve"] as const) {
  for (const [name, fault] of Object.entries(BROKEN)) {
    Deno.test(`nar: ${name} (${dialect}) is never whole, and not kept`, async () => {
      await using upstream = await fakeUpstream({ dialect, objects: [object], stored: true });
      upstream.breakNar(fault);
      await using cache = await TestCache.open({ upstreams: [upstream], idleTimeoutMs: 300 });
      const path = await cache.narPath(HASH);
      await using server = cache.listen();

      const answer = await rawRequest(server.port, requestText("GET", path));

      const broken = answer.status === 404 || !answer.complete;
      assert.ok(broken, `${answer.status}, ${answer.body.length} bytes, ${answer.complete}`);
      await cache.downloadsOver();
      assert.deepEqual(cache.growingFiles(), []);
      assert.deepEqual(await Array.fromAsync(cache.nars.list("")), []);

      upstream.mend();
      const mended = await cache.get(path);
      assert.equal(mended.headers.get("x-cache"), "MISS");
      assertSameBytes(await mended.bytes(), (await upstream.narFileOf(object)).bytes);
    });
  }
}

const MORE = new Uint8Array(300_000);

for (const limitBytes of [undefined, 1_000]) {
  for (const dialect of ["nixos", "harmonia"] as const) {
    const how = limitBytes === undefined ? "is kept" : "is passed through";
    Deno.test(`nar: a right file (${dialect}) with more behind it ${how}`, async () => {
      for (const framed of [chunked(), closeDelimited()]) {
        await using upstream = await fakeUpstream({ dialect, objects: [object], stored: true });
        upstream.breakNar(inOrder(framed, followedBy(MORE)));
        await using cache = await TestCache.open({
          upstreams: [upstream],
          ...(limitBytes ? { limitBytes } : {}),
        });
        const path = await cache.narPath(HASH);
        await using server = cache.listen();

        const answer = await rawRequest(server.port, requestText("GET", path));

        assert.deepEqual([answer.status, answer.complete], [200, true]);
        const right = (await upstream.narFileOf(object)).bytes;
        assertSameBytes(answer.body, right);
        await cache.downloadsOver();
        const kept = await Array.fromAsync(
          cache.nars.list("", { sizes: true }),
          ({ fileSize }) => fileSize,
        );
        assert.deepEqual(kept, limitBytes === undefined ? [right.length] : []);
      }
    });
  }
}

Deno.test("nar: an upstream that fails before the first byte is 404", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], idleTimeoutMs: 300 });
  const path = await cache.narPath(HASH);
  for (const fault of [status(500), status(404), stallAfter(0)]) {
    upstream.breakNar(fault);
    const answer = await cache.get(path);
    assert.equal(answer.status, 404);
    assert.equal(answer.headers.get("x-cache"), "MISS");
    upstream.mend();
  }
});

Deno.test("nar: a narinfo whose unsigned file hash lies is 404 or broken", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNarinfo(wrongFileHash());
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  const answer = await rawRequest(server.port, requestText("GET", path));
  assert.ok(answer.status === 404 || !answer.complete, `${answer.status}`);
  await cache.downloadsOver();
  const reasons = cache.logged("error").map((line) => line["reason"]);
  assert.match(String(reasons), /file_hash/);
});

/** Differences of the narinfo's FileSize: smaller, larger, and larger than any file of the NAR. */
const SIZE_LIES = [1, -1, -999_000, 500_000, 1e12];

for (const limitBytes of [undefined, 3_000_000, 1_000]) {
  for (const hasHash of [true, false]) {
    const how = limitBytes === 1_000 ? "passed through" : "kept";
    const which = `${hasHash ? "with" : "without"} a file hash, limit ${limitBytes ?? "none"}`;
    Deno.test(`nar: a narinfo's file size that lies hides no NAR (${which})`, async () => {
      for (const lie of SIZE_LIES) {
        await using upstream = await fakeUpstream({ objects: [object], stored: true });
        const withoutHash = hasHash ? [] : [withoutLine("FileHash")];
        upstream.breakNarinfo(inOrder(wrongFileSize(lie), ...withoutHash));
        const limit = limitBytes === undefined ? {} : { limitBytes };
        await using cache = await TestCache.open({ upstreams: [upstream], ...limit });
        const path = await cache.narPath(HASH);
        await using server = cache.listen();

        const answer = await rawRequest(server.port, requestText("GET", path));

        const right = (await upstream.narFileOf(object)).bytes;
        assert.deepEqual([answer.status, answer.complete], [200, true], `${lie}`);
        assertSameBytes(answer.body, right);
        await cache.downloadsOver();
        assert.equal(cache.space.budget.reservedBytes, 0);
        const fits = limitBytes === undefined || lie < limitBytes;
        if (how === "kept" && fits) {
          const again = await cache.get(path);
          assert.equal(again.headers.get("x-cache"), "HIT", `${lie}`);
          assertSameBytes(await again.bytes(), right);
          assert.equal(cache.bytesOnDisk(), right.length);
        }
      }
    });
  }
}

Deno.test("nar: a kept file whose size lied gives later narinfos its real size", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNarinfo(firstTimes(1, wrongFileSize(1)));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await (await cache.get(await cache.narPath(HASH))).bytes();
  await cache.downloadsOver();
  await cache.metadata.apply([{ kind: "remove-narinfo", storePathHash: HASH }]);

  const narinfo = await cache.narinfo(HASH);

  const { bytes } = await upstream.narFileOf(object);
  assert.match(narinfo, new RegExp(`^FileSize: ${bytes.length}$`, "m"));
});

Deno.test("nar: a file size that lies hides no other upstream's NAR of the same hash", async () => {
  await using liar = await fakeUpstream({ objects: [object], stored: true, priority: 1 });
  await using honest = await fakeUpstream({ objects: [object], stored: true, priority: 2 });
  liar.breakNarinfo(wrongFileSize(7));
  liar.breakNar(status(404));
  await using cache = await TestCache.open({ upstreams: [liar, honest] });

  const answer = await cache.get(await cache.narPath(HASH));

  assertSameBytes(await answer.bytes(), (await honest.narFileOf(object)).bytes);
});

Deno.test("nar: an upstream whose narinfo lied once is believed when it says another", async () => {
  for (const fault of [wrongFileSize(1), wrongFileHash()]) {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    upstream.breakNarinfo(firstTimes(1, fault));
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const bad = await cache.get(await cache.narPath(HASH));
    await bad.bytes().catch(() => undefined);
    await cache.downloadsOver();

    const answer = await cache.get(await cache.narPath(HASH));

    assertSameBytes(await answer.bytes(), (await upstream.narFileOf(object)).bytes);
  }
});

const RANGES = ["bytes=0-0", "bytes=0-999", "bytes=1000-9999", "bytes=900000-999999"];

for (const limitBytes of [undefined, 1_000]) {
  for (const dialect of ["nixos", "harmonia", "nix-serve"] as const) {
    const how = limitBytes === undefined ? "kept" : "passed through";
    Deno.test(`nar: no part of a wrong file (${dialect}, ${how}) comes whole`, async () => {
      for (const range of RANGES) {
        await using upstream = await fakeUpstream({ dialect, objects: [object], stored: true });
        upstream.breakNar(corruptByteAt(500_000));
        const limit = limitBytes === undefined ? {} : { limitBytes };
        await using cache = await TestCache.open({ upstreams: [upstream], ...limit });
        const path = await cache.narPath(HASH);
        await using server = cache.listen();

        const answer = await rawRequest(server.port, requestText("GET", path, { range }));

        assert.ok(answer.status === 404 || !answer.complete, `${range}: ${answer.status}`);
        await cache.downloadsOver();
      }
    });
  }
}

Deno.test("nar: a range whose download fails before it leaves no file open", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(fileFault(cutAfter, 500_000));
  await using cache = await TestCache.open({ upstreams: [upstream], idleTimeoutMs: 300 });
  // A resource that stays open fails this test.
  const answer = await cache.get(await cache.narPath(HASH), { range: "bytes=900000-" });
  assert.equal(answer.status, 404);
});

Deno.test("nar: of a kept file a narinfo that is fetched again tells its real size", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], allowDelete: true });
  await (await cache.get(await cache.narPath(HASH))).bytes();
  await cache.downloadsOver();
  const right = await cache.narinfo(HASH);
  await cache.metadata.apply([{ kind: "remove-narinfo", storePathHash: HASH }]);
  upstream.breakNarinfo(wrongFileSize(1));
  assert.equal(await cache.narinfo(HASH), right);
});

Deno.test("nar: a file that differs from the NAR hash alone is served, but not kept", async () => {
  // The file hash is that of the wrong bytes, as a lying upstream would announce it.
  const lie = makeStoreObject({ name: "thing-1.0", size: 1_000_000, seed: 9 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const file = await upstream.narFileOf(lie);
  upstream.onRequest = async ({ path }) => {
    if (path.endsWith(".narinfo")) {
      const text = (await upstream.narinfoOf(object))
        .replace(/^FileHash: .*$/m, `FileHash: sha256:${file.fileHash}`)
        .replace(/^FileSize: .*$/m, `FileSize: ${file.bytes.length}`);
      return new Response(text);
    }
    return path.includes("/nar/") ? new Response(file.bytes) : undefined;
  };
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);

  const answer = await cache.get(path);
  assert.equal(answer.status, 200);
  await answer.bytes().catch(() => undefined);
  await cache.downloadsOver();

  assert.deepEqual(await Array.fromAsync(cache.nars.list("")), []);
  const failure = cache.logged("error").find(({ msg }) => msg === "nar verification failed");
  assert.equal(failure?.["reason"], "nar_hash");
});

Deno.test("nar: after a bad one the next upstream gets the request for the file", async () => {
  await using bad = await fakeUpstream({ objects: [object], stored: true });
  await using good = await fakeUpstream({ objects: [object], stored: true });
  bad.breakNar(corruptByteAt(1_000));
  await using cache = await TestCache.open({ upstreams: [bad, good] });
  const path = await cache.narPath(HASH);
  await assert.rejects(async () => await (await cache.get(path)).bytes());

  const second = await cache.get(path);

  assertSameBytes(await second.bytes(), (await good.narFileOf(object)).bytes);
  assert.deepEqual([bad.count(/^\/nar\//), good.count(/^\/nar\//)], [1, 1]);
});

Deno.test("nar: after a bad one the narinfo is that of an upstream with another file", async () => {
  await using bad = await fakeUpstream({ objects: [object], stored: true });
  await using good = await fakeUpstream({ dialect: "harmonia", objects: [object], stored: true });
  bad.breakNar(corruptByteAt(1_000));
  await using cache = await TestCache.open({ upstreams: [bad, good] });
  const path = await cache.narPath(HASH);
  await assert.rejects(async () => await (await cache.get(path)).bytes());

  const secondPath = await cache.narPath(HASH);

  assert.notEqual(secondPath, path);
  assertSameBytes(await (await cache.get(secondPath)).bytes(), object.nar);
});
