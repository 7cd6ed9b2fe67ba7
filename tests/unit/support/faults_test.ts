import assert from "node:assert/strict";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { parsePublicKey } from "../../../src/nix/signature.ts";
import { TrustedKeys } from "../../../src/nix/trusted_keys.ts";
import { type FakeUpstream, fakeUpstream } from "../../support/fake_upstream.ts";
import {
  chunked,
  closeDelimited,
  corruptByteAt,
  cutAfter,
  dropped,
  endAfter,
  type Fault,
  firstTimes,
  followedBy,
  Gate,
  heldUntil,
  inOrder,
  stallAfter,
  status,
} from "../../support/faults.ts";
import { badSignature, garbage, unsigned, wrongFileSize } from "../../support/narinfo_faults.ts";
import { type RawAnswer, RawConnection, rawRequest, requestText } from "../../support/raw_http.ts";
import { makeStoreObject } from "../../support/store_object.ts";

const BIG = makeStoreObject({ name: "big", size: 1_000_000 });

async function upstreamOfBig(): Promise<FakeUpstream> {
  return await fakeUpstream({ dialect: "nixos", compression: "none", objects: [BIG] });
}

async function narWith(fault: Fault, headers: Record<string, string> = {}): Promise<RawAnswer> {
  await using upstream = await upstreamOfBig();
  upstream.breakNar(fault);
  const path = `/${await upstream.narUrlOf(BIG)}`;
  return await rawRequest(upstream.port, requestText("GET", path, headers));
}

/** The state of the promise, or "waiting" when it is still waiting after `meanwhile`. */
async function stateAfter<T>(
  promise: Promise<T>,
  meanwhile: Promise<unknown>,
): Promise<T | "waiting"> {
  return await Promise.race([promise, meanwhile.then(() => "waiting" as const)]);
}

Deno.test("cutAfter: exactly that many bytes arrive of those announced", async () => {
  for (const bytes of [0, 1, 1_000, 262_144, 999_999]) {
    for (const fault of [cutAfter(bytes), inOrder(chunked(), cutAfter(bytes))]) {
      const answer = await narWith(fault);

      assert.deepEqual(answer.body, BIG.nar.slice(0, bytes));
      assert.equal(answer.complete, false);
    }
  }
});

Deno.test("cutAfter: fetch fails, too", async () => {
  await using upstream = await upstreamOfBig();
  upstream.breakNar(cutAfter(5_000));

  const answer = await fetch(`${upstream.url}/${await upstream.narUrlOf(BIG)}`);

  await assert.rejects(answer.bytes(), TypeError);
});

Deno.test("endAfter: a short body looks whole to fetch", async () => {
  await using upstream = await upstreamOfBig();
  upstream.breakNar(endAfter(5_000));

  const answer = await fetch(`${upstream.url}/${await upstream.narUrlOf(BIG)}`);

  assert.equal((await answer.bytes()).length, 5_000);
});

Deno.test("chunked, closeDelimited and followedBy change how a body ends", async () => {
  const inChunks = await narWith(chunked());
  const tillClose = await narWith(closeDelimited());
  const longer = await narWith(followedBy(Uint8Array.of(1, 2)));

  assert.equal(inChunks.complete, true);
  assert.equal(inChunks.headers.get("content-length"), null);
  assert.deepEqual(inChunks.body, BIG.nar);
  assert.equal(tillClose.complete, false);
  assert.deepEqual(tillClose.body, BIG.nar);
  assert.deepEqual([...longer.body.slice(-2)], [1, 2]);
  assert.equal(longer.complete, true);
});

Deno.test("corruptByteAt: one byte of the file differs, in a range of it as well", async () => {
  const whole = await narWith(corruptByteAt(300_000));
  const range = await narWith(corruptByteAt(300_000), { "Range": "bytes=299999-300001" });

  const differing = whole.body.findIndex((byte, at) => byte !== BIG.nar[at]);
  assert.equal(differing, 300_000);
  assert.deepEqual(range.body, whole.body.slice(299_999, 300_002));
});

Deno.test("status and dropped: another answer, or none", async () => {
  const busy = await narWith(status(503, { "Retry-After": "1" }));
  const none = await narWith(dropped());

  assert.equal(busy.status, 503);
  assert.equal(busy.headers.get("retry-after"), "1");
  assert.equal(none.status, 0);
});

Deno.test("heldUntil and stallAfter wait for the test", async () => {
  await using upstream = await upstreamOfBig();
  const [head, body] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  upstream.breakNar(inOrder(heldUntil(head.promise), stallAfter(10, body.promise)));
  await using connection = await RawConnection.open(upstream.port);
  await connection.send(requestText("GET", `/${await upstream.narUrlOf(BIG)}`));

  const answer = connection.answer();
  assert.equal(await stateAfter(answer, upstream.requested(/^\/nar\//)), "waiting");
  head.resolve();
  const { reader } = await answer;
  assert.equal((await reader.read(10)).length, 10);
  body.resolve();

  assert.equal((await reader.read()).length, BIG.narSize - 10);
  assert.equal(reader.isComplete, true);
});

Deno.test("a gate lets as much of a body pass as the test releases", async () => {
  await using upstream = await upstreamOfBig();
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  await using connection = await RawConnection.open(upstream.port);
  await connection.send(requestText("GET", `/${await upstream.narUrlOf(BIG)}`));

  await gate.reached(0);
  const { reader } = await connection.answer();
  gate.release(1_000);
  await gate.reached(1_000);
  assert.equal((await upstream.requested(/nar/)).sentBytes, 1_000);
  assert.deepEqual(await reader.read(1_000), BIG.nar.slice(0, 1_000));
  gate.open();

  assert.deepEqual(await reader.read(), BIG.nar.slice(1_000));
});

Deno.test("firstTimes: the response after them is right again", async () => {
  await using upstream = await upstreamOfBig();
  upstream.breakNar(firstTimes(2, status(500)));
  const path = `/${await upstream.narUrlOf(BIG)}`;

  const statuses: number[] = [];
  for (let asked = 0; asked < 3; asked++) {
    statuses.push((await rawRequest(upstream.port, requestText("GET", path))).status);
  }

  assert.deepEqual(statuses, [500, 500, 200]);
});

Deno.test("a client that leaves in the middle is noticed, and nothing stays open", async () => {
  await using upstream = await upstreamOfBig();
  upstream.breakNar(stallAfter(500_000));
  const path = `/${await upstream.narUrlOf(BIG)}`;

  const answer = await rawRequest(upstream.port, requestText("GET", path), {
    stopAfterBodyBytes: 1_000,
  });

  assert.equal(answer.complete, false);
  assert.equal(await upstream.matching(path)[0]?.finished, "left");
});

Deno.test("an upstream can be switched off while clients wait for it or do not read", async () => {
  const huge = makeStoreObject({ name: "huge", size: 30_000_000 });
  await using upstream = await fakeUpstream({ dialect: "nix-serve", objects: [huge] });
  const path = `/${await upstream.narUrlOf(huge)}`;
  await using unread = await RawConnection.open(upstream.port);
  await unread.send(requestText("GET", path));
  await using half = await RawConnection.open(upstream.port);
  await half.send("GET / HT");
  const { reader } = await unread.answer();

  await upstream.stop();

  assert.ok((await reader.read()).length < huge.narSize);
  assert.equal(reader.isComplete, false);
  assert.equal((await half.answer()).status, 0);
  assert.equal(await upstream.matching(path)[0]?.finished, "left");
});

Deno.test("narinfo faults break the lines that they name", async () => {
  const hello = makeStoreObject({ name: "hello" });
  await using upstream = await fakeUpstream({ objects: [hello], stored: true });
  const keys = new TrustedKeys([parsePublicKey(upstream.publicKey)]);
  const read = async (fault: Fault) => {
    upstream.mend();
    upstream.breakNarinfo(fault, hello);
    return await (await fetch(`${upstream.url}/${hello.storePathHash}.narinfo`)).text();
  };
  const right = parseNarinfo(await upstream.narinfoOf(hello));

  const badlySigned = parseNarinfo(await read(badSignature()));

  assert.equal(badlySigned.signatures.length, 1);
  assert.equal(keys.signerOf(badlySigned), undefined);
  assert.equal(parseNarinfo(await read(unsigned())).signatures.length, 0);
  assert.equal(parseNarinfo(await read(wrongFileSize(3))).fileSize, (right.fileSize ?? 0) + 3);
  assert.throws(() => parseNarinfo(""), /Cannot read narinfo/);
  const page = await read(garbage());
  assert.throws(() => parseNarinfo(page), /Cannot read narinfo/);
});
