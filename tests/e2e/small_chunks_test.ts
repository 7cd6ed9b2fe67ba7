import assert from "node:assert/strict";
import { parseBaseName } from "../../src/nix/store_path.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { type Fault, inByteChunks } from "../support/faults.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";

const MIB = 1 << 20;
/** With 64 KiB for each byte, two gigabytes. */
const DOCUMENT_BYTES = 40_000;
/** They have 500 MiB, far above the limit with any slack. */
const LOGS = 25;
/** As the architecture's notes say. */
const DOCUMENTS_MIB_MAX = 64;
/** The memory of the process beside the bytes that it holds. */
const SLACK_MIB = 96;
/** The same beside many large bodies: a collection of garbage comes late on a busy machine. */
const LARGE_SLACK_MIB = 192;

// They make a narinfo of 40 KB.
const references = Array.from({ length: 700 }, (_, index) => ({
  baseName: parseBaseName(`${String(index).padStart(32, "0")}-a-reference-of-it`),
}));
const object = makeStoreObject({ name: "thing-1.0", size: DOCUMENT_BYTES, references });
const HASH = object.storePathHash;
const LISTING = `/${HASH}.ls`;
const LOG = `/log/${HASH}-thing-1.0.drv`;
const text = "x".repeat(DOCUMENT_BYTES);
const documents = { [LISTING]: JSON.stringify({ version: 1, root: { text } }), [LOG]: text };

Deno.test("small chunks: a narinfo, a listing and a log hold no more than they are", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true, documents });
  upstream.breakNarinfo(inByteChunks());
  upstream.breakDocument(inByteChunks());
  await using larder = await larderOf(upstream);
  const before = larder.peakBytes;

  const paths = [`/${HASH}.narinfo`, LISTING, LOG];
  const answers = await Promise.all(paths.map((path) => fetch(larder.url + path)));

  const [, ...sent] = await Promise.all(answers.map((answer) => answer.text()));
  assertGrew(larder, before, SLACK_MIB);
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200]);
  assert.deepEqual(sent, [documents[LISTING], documents[LOG]]);
});

Deno.test("small chunks: a passed-through NAR holds no more than it is", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(inByteChunks());
  await using larder = await larderOf(upstream, { "cache-max-size": "1K" });
  const narinfo = await (await fetch(`${larder.url}/${HASH}.narinfo`)).text();
  const before = larder.peakBytes;

  const nar = await fetch(`${larder.url}/${/^URL: (.*)$/m.exec(narinfo)?.[1]}`);

  assertSameBytes(await nar.bytes(), (await upstream.narFileOf(object)).bytes);
  assertGrew(larder, before, SLACK_MIB);
});

Deno.test("small chunks: unread compressed logs stay below the limit", async () => {
  const paths = Array.from({ length: LOGS }, (_, at) => `/log/${HASH}-${at}.drv`);
  const logs = Object.fromEntries(paths.map((path) => [path, ""]));
  await using upstream = await fakeUpstream({ documents: logs });
  upstream.breakDocument(await compressedLog(20));
  await using larder = await larderOf(upstream);
  const before = larder.peakBytes;
  await using clients = new AsyncDisposableStack();

  for (const path of paths) {
    const client = clients.use(await RawConnection.open(larder.port));
    await client.send(requestText("GET", path));
    // It begins when its memory is used up, or it is larger than any that is held.
    assert.equal((await client.answer()).status, 200);
  }

  assertGrew(larder, before, DOCUMENTS_MIB_MAX + LARGE_SLACK_MIB);
});

function larderOf(upstream: FakeUpstream, flags: LarderFlags = {}): Promise<LarderProcess> {
  return startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    // This test does not measure requests for the references.
    "cache-prefetch": "false",
    // So many chunks take their time on a busy machine.
    "cache-upstream-response-header-timeout": "20s",
    ...flags,
  });
}

/** A text of so many MiB, sent with gzip. */
async function compressedLog(mib: number): Promise<Fault> {
  // Random bytes leave gzip in small pieces, mixed with compressed ones.
  const piece = new Uint8Array(MIB).fill(120);
  crypto.getRandomValues(piece.subarray(0, 1 << 16));
  const body = await new Response(
    ReadableStream.from(Array.from({ length: mib }, () => piece))
      .pipeThrough(new CompressionStream("gzip")),
  ).bytes();
  return (answer) => {
    const headers = new Headers([...answer.headers, ["content-encoding", "gzip"]]);
    return { ...answer, headers, body, framing: body.length };
  };
}

function assertGrew(larder: LarderProcess, before: number, mibMax: number): void {
  const grownMib = (larder.peakBytes - before) / MIB;
  assert.ok(grownMib < mibMax, `its peak grew by ${Math.round(grownMib)} MiB`);
}
