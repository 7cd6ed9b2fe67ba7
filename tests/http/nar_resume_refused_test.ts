import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import {
  corruptByteAt,
  cutAfter,
  type Fault,
  fileFault,
  firstTimes,
  inOrder,
  status,
} from "../support/faults.ts";
import { type RawAnswer, rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache, type TestLogLine } from "../support/test_cache.ts";
import type { Answer } from "../support/wire_answer.ts";

const object = makeStoreObject({ name: "big-1.0", size: 1_000_000 });
const HASH = object.storePathHash;
const stored = { objects: [object], stored: true } as const;
const HALF = 500_000;

/** The first answer breaks off in the middle; the fault is that of the answers that follow. */
function thenRest(fault: Fault): Fault {
  const cut = firstTimes(1, cutAfter(HALF));
  return (answer, exchange) =>
    exchange.headers.has("range") ? fault(answer, exchange) : cut(answer, exchange);
}

/** A 206 whose Content-Range is another one. */
function contentRange(text: string): Fault {
  return (answer: Answer) => {
    const headers = new Headers(answer.headers);
    headers.set("content-range", text);
    return { ...answer, headers };
  };
}

/** Rests of a file that are none of ours. */
const WRONG_RESTS: Readonly<Record<string, Fault>> = {
  "another byte": corruptByteAt(HALF + 10),
  "a range that begins too late": contentRange(`bytes ${HALF + 9}-1000215/1000216`),
  "a range of a longer file": contentRange(`bytes ${HALF}-1000215/1000217`),
  "a range that is none": contentRange("bytes 1-2-3"),
  "status 416": status(416, { "content-range": `bytes */${HALF - 1}` }),
};

for (const [name, fault] of Object.entries(WRONG_RESTS)) {
  Deno.test(`resume: after a cut, ${name} is never taken for the rest`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNar(thenRest(fault));
    await assertBroken(upstream, await fetched([upstream]));
  });
}

Deno.test("resume: a bad rest of another upstream does not end well either", async () => {
  await using good = await fakeUpstream({ ...stored, priority: 10 });
  await using bad = await fakeUpstream({ ...stored, priority: 20 });
  good.breakNar(fileFault(cutAfter, HALF));
  bad.breakNar(corruptByteAt(HALF + 10));
  const { answer, log } = await fetched([good, bad]);
  await assertBroken(good, { answer });
  const failure = log.find(({ msg }) => msg === "nar verification failed");
  assert.equal(failure?.["reason"], "file_hash");
  assert.equal(failure?.["from"], `${good.url} ${bad.url}`);
});

Deno.test("resume: without a file hash, another compression run is never mixed in", async () => {
  const attic = { ...stored, dialect: "attic" } as const;
  for (const different of [corruptByteAt(10), corruptByteAt(HALF - 10)]) {
    await using dying = await fakeUpstream({ ...attic, priority: 10 });
    await using other = await fakeUpstream({ ...attic, priority: 20, hasRanges: true });
    dying.breakNar(fileFault(cutAfter, HALF));
    other.breakNar(different);
    const { answer, log } = await fetched([dying, other]);
    await assertBroken(dying, { answer });
    // larder does not even request a range: it could not tell those bytes from ours.
    const ranges = other.matching(/\/nar\//).map(({ headers }) => headers.get("range"));
    assert.deepEqual(new Set(ranges), new Set([null]));
    assert.match(JSON.stringify(log), /it sends other bytes than those that are here/);
  }
});

Deno.test("resume: without a file hash, the same bytes of another upstream will do", async () => {
  const attic = { ...stored, dialect: "attic" } as const;
  await using dying = await fakeUpstream({ ...attic, priority: 10 });
  await using other = await fakeUpstream({ ...attic, priority: 20 });
  dying.breakNar(fileFault(cutAfter, HALF));
  const { answer } = await fetched([dying, other]);
  assert.ok(answer.complete);
  assert.ok(equal(answer.body, (await other.narFileOf(object)).bytes));
});

Deno.test("resume: without a file hash, a range request names the file's tag", async () => {
  for (const isReplaced of [false, true]) {
    await using upstream = await fakeUpstream({ ...stored, dialect: "attic", hasRanges: true });
    const tag = (text: string): Fault => (answer) => {
      const headers = new Headers(answer.headers);
      headers.set("etag", text);
      return { ...answer, headers };
    };
    upstream.breakNar(firstTimes(1, inOrder(tag('"one"'), cutAfter(HALF))));
    const { bytes } = await upstream.narFileOf(object);
    upstream.onRequest = ({ headers }) => {
      if (!headers.has("range") || !isReplaced) return undefined;
      // RFC 9110, 13.1.5: the tag is another one, so the whole file is sent, which is another.
      return new Response(bytes.toReversed(), { headers: { etag: '"two"' } });
    };

    const { answer } = await fetched([upstream]);

    const rest = upstream.matching(/\/nar\//)[1]?.headers;
    assert.deepEqual([rest?.get("range"), rest?.get("if-range")], [`bytes=${HALF}-`, '"one"']);
    if (isReplaced) await assertBroken(upstream, { answer });
    else assert.ok(answer.complete && equal(answer.body, bytes));
  }
});

Deno.test("resume: after a broken transfer the next request gets all of it", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNar(fileFault(cutAfter, HALF));
  await using cache = await TestCache.open({ upstreams: [upstream], idleTimeoutMs: 200 });
  const path = await cache.narPath(HASH);
  await assert.rejects(async () => await (await cache.get(path)).bytes());
  upstream.mend();
  const body = await (await cache.get(path)).bytes();
  assert.ok(equal(body, (await upstream.narFileOf(object)).bytes));
});

interface Fetched {
  readonly answer: RawAnswer;
  readonly log: readonly TestLogLine[];
}

async function fetched(upstreams: readonly FakeUpstream[]): Promise<Fetched> {
  await using cache = await TestCache.open({ upstreams, idleTimeoutMs: 300 });
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  const answer = await rawRequest(server.port, requestText("GET", path));
  await cache.downloadsOver();
  assert.deepEqual(cache.growingFiles(), []);
  if (!answer.complete) assert.deepEqual(await Array.fromAsync(cache.nars.list("")), []);
  return { answer, log: cache.log };
}

/** Bytes before the break are right, except wrong ones that only the end of the NAR can show. */
async function assertBroken(upstream: FakeUpstream, { answer }: Pick<Fetched, "answer">) {
  assert.deepEqual([answer.status, answer.complete], [200, false]);
  const { bytes } = await upstream.narFileOf(object);
  const right = Math.min(HALF, answer.body.length);
  assert.ok(equal(answer.body.subarray(0, right), bytes.subarray(0, right)));
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
