import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import { formatSha256, sha256FromDigest } from "../../src/nix/hash.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { type Fault, firstTimes } from "../support/faults.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { listenOnSteadyPort } from "../support/steady_port.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 300_000 });
const HASH = object.storePathHash;
const PATH = `/${HASH}.narinfo`;
const stored = { objects: [object], stored: true } as const;

/** The most that may be in flight in the sockets when larder gives up a body. */
const IN_FLIGHT_BYTES = 16 << 20;

const references = (count: number) =>
  Array.from({ length: count }, (_, at) => `${String(at).padStart(32, "0")}-x`).join(" ");

/** Narinfos that no real cache sends. */
const NARINFOS: Readonly<Record<string, Fault>> = {
  "50 MB": rewritten((text) => `${text}X: ${"x".repeat(50_000_000)}\n`),
  "50 MB in chunks": (answer) => ({ ...answer, framing: "chunked", body: zeros(50_000_000) }),
  "no end": (answer) => ({ ...answer, framing: "chunked", body: zeros(Infinity) }),
  "100,000 references": rewritten((text) =>
    text.replace(/^References:.*$/m, `References: ${references(100_000)}`)
  ),
  "100,000 references that are one": rewritten((text) =>
    text.replace(/^References:.*$/m, `References: ${"0".repeat(32)}-x `.repeat(100_000))
  ),
};

for (const [name, fault] of Object.entries(NARINFOS)) {
  Deno.test(`hostile: a narinfo of ${name} is refused early, and logged`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNarinfo(fault);
    await using cache = await TestCache.open({ upstreams: [upstream] });
    assert.equal((await cache.get(PATH)).status, 404);
    const [request] = upstream.matching(PATH);
    assert.ok((request?.sentBytes ?? 0) < IN_FLIGHT_BYTES, `${request?.sentBytes} bytes`);
    assert.equal(cache.logged("warn")[0]?.["reason"], "garbage");
    upstream.mend();
    assert.equal((await cache.get(PATH)).status, 200);
  });
}

Deno.test("hostile: 1xx heads without an end are no answer, and end with its timeout", async () => {
  await using upstream = endlessHeads();
  const limits = { headerTimeoutMs: 200 };
  await using cache = await TestCache.open({
    upstreams: [upstream.url],
    limits,
    idleTimeoutMs: 300,
  });
  for (const path of [PATH, `/${HASH}.ls`, `/nar/${object.narHash}.nar`]) {
    assert.equal((await cache.get(path)).status, 404);
  }
  assert.equal(cache.logged("warn")[0]?.["reason"], "timeout");
  await eventually("larder has left", () => upstream.open === 0);
});

Deno.test("hostile: a NAR without an end is cut at its bound", async () => {
  await using upstream = await fakeUpstream({ ...stored, dialect: "attic" });
  const { bytes } = await upstream.narFileOf(object);
  upstream.breakNar((answer) => ({ ...answer, framing: "chunked", body: endless(bytes) }));
  await assertRefused(upstream, /file_size|undecodable/);
  const [request] = upstream.matching(/\/nar\//);
  assert.ok((request?.sentBytes ?? 0) < IN_FLIGHT_BYTES, `${request?.sentBytes} bytes`);
});

for (const dialect of ["nixos", "nix-serve"] as const) {
  Deno.test(`hostile: endless bytes behind a right file (${dialect}) are not read`, async () => {
    await using upstream = await fakeUpstream({ ...stored, dialect });
    const { bytes } = await upstream.narFileOf(object);
    upstream.breakNar((answer) => ({ ...answer, framing: "chunked", body: endless(bytes) }));
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const answer = await cache.get(await cache.narPath(HASH));
    assertSameBytes(await answer.bytes(), bytes);
    await cache.downloadsOver();
    assert.deepEqual(cache.growingFiles(), []);
    const [request] = upstream.matching(/\/nar\//);
    assert.ok((request?.sentBytes ?? 0) < IN_FLIGHT_BYTES, `${request?.sentBytes} bytes`);
    const said = cache.logged("warn").map(({ msg }) => msg);
    assert.deepEqual(said, ["upstream sent more than the nar file"]);
    const text = await (await cache.get("/metrics")).text();
    assert.match(text, /^larder_verification_failures_total\{reason="file_size"\} 1$/m);
  });
}

Deno.test("hostile: a small file that holds 256 MiB is given up at the signed size", async () => {
  const bomb = await gzippedZeros(256 << 20);
  for (const hasHash of [true, false]) {
    await using upstream = await fakeUpstream(stored);
    const fileHash = sha256FromDigest(createHash("sha256").update(bomb).digest());
    const lines = hasHash ? `FileHash: ${formatSha256(fileHash)}\nFileSize: ${bomb.length}\n` : "";
    upstream.breakNarinfo(
      rewritten((text) =>
        text.replace(/^Compression: .*$/m, "Compression: gzip")
          .replace(/^FileHash: .*\nFileSize: .*\n/m, lines)
      ),
    );
    upstream.breakNar((answer) => ({ ...answer, body: bomb, framing: bomb.length }));
    await assertRefused(upstream, /undecodable|file_size/, hasHash);
  }
});

Deno.test("hostile: a Content-Length of a NAR beyond reason is refused", async () => {
  await using upstream = await fakeUpstream({ ...stored, dialect: "attic" });
  upstream.breakNar(firstTimes(9, (answer) => ({ ...answer, framing: 1e14 })));
  await assertRefused(upstream, /file_size/);
});

/** The NAR is 404 or breaks, nothing is kept, and the log says why. */
async function assertRefused(upstream: FakeUpstream, reason: RegExp, mayBeWhole = false) {
  await using cache = await TestCache.open({ upstreams: [upstream], idleTimeoutMs: 500 });
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  const answer = await rawRequest(server.port, requestText("GET", path));
  assert.ok(mayBeWhole || answer.status === 404 || !answer.complete, "it looks whole");
  await cache.downloadsOver();
  assert.deepEqual(await Array.fromAsync(cache.nars.list("")), []);
  assert.deepEqual(cache.growingFiles(), []);
  const failure = cache.logged("error").find(({ msg }) => msg === "nar verification failed");
  assert.match(String(failure?.["reason"]), reason);
}

/** Sends interim heads for as long as its client stays. */
function endlessHeads() {
  const listener = listenOnSteadyPort();
  const served = new Set<Promise<void>>();
  const head = new TextEncoder().encode("HTTP/1.1 103 Early Hints\r\n\r\n");
  const serve = async (connection: Deno.Conn) => {
    try {
      await connection.read(new Uint8Array(4_096));
      for (;;) {
        await connection.write(head);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    } catch {
      connection.close();
    }
  };
  const accepting = (async () => {
    for await (const connection of listener) {
      const one = serve(connection);
      served.add(one);
      void one.then(() => served.delete(one));
    }
  })();
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    get open() {
      return served.size;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      await Promise.all(served);
    },
  };
}

async function* zeros(byteLength: number): AsyncGenerator<Uint8Array> {
  const piece = new Uint8Array(64 * 1024);
  for (let left = byteLength; left > 0; left -= piece.length) yield piece;
}

async function* endless(start: Uint8Array): AsyncGenerator<Uint8Array> {
  yield start;
  yield* zeros(Infinity);
}

async function gzippedZeros(byteLength: number): Promise<Bytes> {
  const bytes = ReadableStream.from(zeros(byteLength)) as ReadableStream<Bytes>;
  return await new Response(bytes.pipeThrough(new CompressionStream("gzip"))).bytes();
}
