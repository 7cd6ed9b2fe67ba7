import assert from "node:assert/strict";
import fc from "fast-check";
import { RecentRate } from "../../../src/base/recent_rate.ts";
import { checkProperty } from "../../support/property.ts";

Deno.test("recent rate: a standstill of five seconds is a rate of 0, whatever came before", () => {
  let nowMs = 12_345;
  const rate = new RecentRate(() => nowMs);
  assert.equal(rate.bytesPerSecond, undefined);
  rate.note(0);
  for (let second = 0; second < 20; second++) {
    nowMs += 500;
    rate.note(1_000 * (second + 1) - 500);
    if (second === 0) assert.equal(rate.bytesPerSecond, undefined);
    nowMs += 500;
    rate.note(1_000 * (second + 1));
  }
  const steady = rate.bytesPerSecond ?? NaN;
  assert.ok(steady > 900 && steady < 1_100, `${steady}`);

  nowMs += 2_000;
  const slower = rate.bytesPerSecond ?? NaN;
  assert.ok(slower > 400 && slower <= 700, `${slower}`);
  nowMs += 3_000;
  assert.deepEqual([rate.bytesPerSecond, rate.idleMs], [0, 5_000]);
  nowMs += 3_600_000;
  assert.equal(rate.bytesPerSecond, 0);
});

Deno.test("recent rate: a count that begins again loses no later byte, and adds none", () => {
  let nowMs = 0;
  const rate = new RecentRate(() => nowMs);
  rate.note(5_000);
  nowMs = 2_000;
  rate.note(0);
  rate.note(1_000);
  nowMs = 3_000;
  assert.equal(rate.bytesPerSecond, 2_000);
});

const growth = fc.record({ waitMs: fc.nat(3_000), bytes: fc.nat(1_000_000) });

Deno.test("recent rate: pieces that come in a steady beat have a steady rate", () => {
  for (const beatMs of [1_000, 500, 250]) {
    let nowMs = 12_345;
    const rate = new RecentRate(() => nowMs);
    const shown = new Set<number | undefined>();
    for (let piece = 1; piece <= 80; piece++) {
      rate.note(piece * beatMs * 512);
      for (let part = 0; part < 10; part++) {
        nowMs += beatMs / 10;
        shown.add(rate.bytesPerSecond);
      }
    }
    shown.delete(undefined);
    assert.deepEqual([...shown], [512_000], `one each ${beatMs} ms`);
  }
});

checkProperty(
  "recent rate: it counts the bytes of the last five whole seconds, and no others",
  fc.property(fc.array(growth, { minLength: 1 }), (growths) => {
    let [nowMs, total] = [0, 0];
    const rate = new RecentRate(() => nowMs);
    rate.note(0);
    const came = growths.map(({ waitMs, bytes }) => {
      nowMs += waitMs;
      rate.note(total += bytes);
      return { atMs: nowMs, bytes };
    });
    const shown = rate.bytesPerSecond;
    if (nowMs < 1_000) return assert.equal(shown, undefined);
    const endS = Math.floor(nowMs / 1_000);
    const fromS = Math.max(0, endS - 5);
    const sum = came.filter(({ atMs }) => atMs >= fromS * 1_000 && atMs < endS * 1_000)
      .reduce((all, { bytes }) => all + bytes, 0);
    assert.equal(shown, Math.round(sum / (endS - fromS)));
  }),
);
