import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { HeldClock } from "../support/held_clock.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import {
  ALLOWED,
  AS_WRITER,
  push,
  pushOf,
  said,
  uploadCache,
  uploadKey,
} from "../support/uploading.ts";
import { eventually } from "../support/eventually.ts";

const COUNT = 8;

/** Beyond the memory of uploads: some wait for that of others, in no time of this test's clock. */
const SMALL_COUNT = 64;

/** 900 MB in 658 bytes. */
const BOMB = Deno.readFileSync(new URL("../fixtures/nar/zeros.bz2", import.meta.url));

const honest = makeStoreObject({ name: "thing-1.0", size: 1_000 });

/** Other bytes for each sender: an empty stream of bzip2 in front. */
const EMPTY = Uint8Array.from([
  0x42,
  0x5a,
  0x68,
  0x39,
  0x17,
  0x72,
  0x45,
  0x38,
  0x50,
  0x90,
  0,
  0,
  0,
  0,
]);

function bombs(): readonly Bytes[] {
  return Array.from({ length: COUNT }, (_, at) => joined([...Array(at).fill(EMPTY), BOMB]));
}

for (
  const [who, peerOf] of [
    ["eight clients", (at: number) => `192.0.2.${at + 1}`],
    ["one client, and the honest one is the same", () => "127.0.0.1"],
  ] as const
) {
  Deno.test(`upload bombs: an honest upload passes those of ${who}`, async () => {
    await using cache = await uploadCache();
    const gone = new AbortController();
    const answered: string[] = [];
    const sent = bombs().map(async (bytes, at) => {
      const options = { peer: peerOf(at), signal: gone.signal };
      const answer = await cache.put(narPathOf(bytes), bytes, AS_WRITER, options);
      answered.push("bomb");
      return (await said(answer))[1];
    });
    await eventually("all bombs are here", () => cache.growingFiles().length === COUNT);
    const one = await pushOf(honest, { compression: "xz" });
    assert.deepEqual(await push(cache, one), [201, 201]);
    assert.deepEqual(answered, [], "the honest one is first");
    gone.abort();
    const lines = await Promise.all(sent);
    assert.deepEqual(lines, Array(COUNT).fill("expected a client that waits"));
    assert.deepEqual(cache.growingFiles(), [], "nothing of those that left is there");
  });
}

Deno.test("upload bombs: the work of a client that hung up behind its last byte ends", async () => {
  await using cache = await uploadCache();
  await using server = cache.listen({ sweepEveryMs: 20 });
  {
    await using connection = await RawConnection.open(server.port);
    const headers = { ...AS_WRITER, "Content-Length": String(BOMB.length) };
    await connection.send(requestText("PUT", narPathOf(BOMB), headers));
    await connection.send(BOMB);
    await eventually("it is here", () => cache.growingFiles().length === 1);
  }
  await eventually("nothing of it is here", () => cache.growingFiles().length === 0);
  await eventually("it is logged", () => cache.log.some(({ msg }) => msg === "upload refused"));
  const reasons = cache.log.filter(({ msg }) => msg === "upload refused").map((row) =>
    row["reason"]
  );
  assert.deepEqual(reasons, ["expected a client that waits"]);
});

Deno.test("upload bombs: small bodies that unpack to much are 413, beside honest ones", async () => {
  using _clock = new HeldClock(Date.now());
  await using cache = await TestCache.open({
    upstreams: [],
    uploads: { ...ALLOWED, keys: [uploadKey.publicKey] },
  });
  const one = await pushOf(honest, { key: uploadKey });
  assert.equal((await said(await cache.put(one.narPath, one.file.bytes)))[0], 201);
  const headers = { "content-encoding": "bzip2" };
  const sent = Array.from({ length: SMALL_COUNT }, async () => {
    return await said(await cache.put(one.narinfoPath, BOMB, headers));
  });
  assert.equal((await said(await cache.put(one.narinfoPath, one.narinfo)))[0], 201);
  const line = "expected at most 2097152 bytes behind bzip2";
  assert.deepEqual(await Promise.all(sent), Array(SMALL_COUNT).fill([413, line]));
  const reasons = cache.log.filter(({ msg }) => msg === "upload refused").map((row) =>
    row["reason"]
  );
  assert.deepEqual(reasons, Array(SMALL_COUNT).fill(line));
});

Deno.test("upload bombs: two MiB of empty frames are 422", async () => {
  await using cache = await uploadCache();
  const { narinfoPath } = await pushOf(honest);
  const frames = { zstd: [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0], bzip2: [...EMPTY] };
  for (const [encoding, frame] of Object.entries(frames)) {
    const body = joined(Array(Math.floor((2 << 20) / frame.length)).fill(Uint8Array.from(frame)));
    const headers = { ...AS_WRITER, "content-encoding": encoding };
    const [status, line] = await said(await cache.put(narinfoPath, body, headers));
    assert.equal(status, 422);
    assert.match(line, /too many small (?:frames|streams)/);
  }
});

function joined(parts: readonly Uint8Array[]): Bytes {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function narPathOf(bytes: Uint8Array): string {
  const hash = sha256FromDigest(createHash("sha256").update(bytes).digest());
  return `/upload/nar/${hash}.nar.bz2`;
}
