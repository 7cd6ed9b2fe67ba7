import assert from "node:assert/strict";
import fc from "fast-check";
import { FailedTokens } from "../../../../src/http/access/tokens.ts";
import type { ClientRequest } from "../../../../src/http/message/message.ts";
import { checkProperty } from "../../../support/property.ts";

Deno.test("failed tokens: ten are free, further ones wait longer, up to five seconds", () => {
  const failed = new FailedTokens(() => 0);
  const delays = Array.from({ length: 17 }, () => failed.delayMs("192.0.2.7"));
  assert.deepEqual(delays.slice(0, 10), Array(10).fill(0));
  assert.deepEqual(delays.slice(10), [1_000, 2_000, 3_000, 4_000, 5_000, 5_000, 5_000]);
  assert.equal(failed.delayMs("192.0.2.8"), 0);
});

Deno.test("failed tokens: an IPv6 client has one account for all its addresses", () => {
  const failed = new FailedTokens(() => 0);
  for (let count = 0; count < 10; count++) failed.delayMs(`2001:db8:0:1::${count}`);
  assert.equal(failed.delayMs("2001:db8:0:1:ffff::"), 1_000);
  assert.equal(failed.delayMs("2001:db8:0:2::"), 0);
});

Deno.test("failed tokens: a flood of addresses does not let memory grow", () => {
  const failed = new FailedTokens(() => 0);
  for (let count = 0; count < 11; count++) failed.delayMs("192.0.2.7");
  for (let count = 0; count < 10_000; count++) failed.delayMs(`10.0.${count >> 8}.${count & 255}`);
  assert.equal(failed.delayMs("192.0.2.7"), 0);
});

Deno.test("failed tokens: the server hears of each that is held back, and of no other", async () => {
  const failed = new FailedTokens(() => 0);
  let heldBack = 0;
  const request = {
    ...guessFrom("192.0.2.7", AbortSignal.abort()),
    heldBack: () => void heldBack++,
  };
  for (let count = 0; count < 12; count++) await failed.slow(request);
  assert.equal(heldBack, 2);
});

Deno.test("failed tokens: no number of waiting guesses frees one of its delay", async () => {
  const failed = new FailedTokens(() => 0);
  for (let count = 0; count < 11; count++) failed.delayMs("192.0.2.7");
  const leaving = new AbortController();
  const { signal } = leaving;
  let answered = 0;
  const waiting = Array.from({ length: 2_000 }, async () => {
    await failed.slow(guessFrom("192.0.2.7", signal));
    answered++;
  });
  await failed.slow(guessFrom("192.0.2.8", signal));
  assert.equal(answered, 0);
  leaving.abort();
  await Promise.all(waiting);
});

checkProperty(
  "failed tokens: in any minute an address gets at most 75 answers without the full delay",
  fc.property(fc.array(fc.integer({ min: 0, max: 2_000 }), { maxLength: 200 }), (pauses) => {
    let nowMs = 0;
    const failed = new FailedTokens(() => nowMs);
    const soonAtMs = pauses.flatMap((ms) => {
      nowMs += ms;
      return failed.delayMs("192.0.2.7") < 5_000 ? [nowMs] : [];
    });
    for (const [at, beginMs] of soonAtMs.entries()) {
      const inMinute = soonAtMs.slice(at).filter((atMs) => atMs < beginMs + 60_000);
      assert.ok(inMinute.length <= 75, `${inMinute.length} from ${beginMs} ms`);
    }
  }),
);

function guessFrom(peer: string, signal: AbortSignal): ClientRequest {
  return {
    ...{ method: "GET", url: "http://localhost/pubkey", headers: new Headers(), body: null },
    peer,
    signal,
  };
}
