import assert from "node:assert/strict";
import { NarRates } from "../../../src/upstream/pooled_upstream.ts";
import { PlayedTime } from "../../support/played_time.ts";

const KIB = 1024;

Deno.test("nar rates: a slow transfer has its rate while it runs, not after it alone", async () => {
  using time = new PlayedTime();
  const rates = new NarRates();
  const note = rates.begin("https://a.example");
  assert.equal(rates.of("https://a.example"), undefined);
  for (let second = 0; second < 4; second++) {
    await time.advance(1_000);
    note(500 * KIB);
  }
  assert.equal(rates.of("https://a.example"), 500 * KIB);
  assert.equal(rates.of("https://b.example"), undefined);
});

Deno.test("nar rates: a small NAR says nothing, and many transfers have one mean", async () => {
  using time = new PlayedTime();
  const rates = new NarRates();
  const small = rates.begin("a");
  await time.advance(1);
  small(10 * KIB);
  assert.equal(rates.of("a"), undefined);
  for (const bytes of [300 * KIB, 900 * KIB]) {
    const note = rates.begin("a");
    await time.advance(1_000);
    note(bytes);
  }
  assert.equal(rates.of("a"), 600 * KIB);
});
