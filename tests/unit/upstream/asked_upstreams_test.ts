import assert from "node:assert/strict";
import { AskedUpstreams } from "../../../src/upstream/asked_upstreams.ts";
import { HeldClock } from "../../support/held_clock.ts";

/** The upstream of each stretch and its length, the last first. */
function told(waits: AskedUpstreams, name: string, fromMs: number, toMs: number): unknown[] {
  return waits.between(name, fromMs, toMs)
    .map(({ upstream, fromMs, toMs }) => [upstream, toMs - fromMs]);
}

Deno.test("asked upstreams: of two that are asked at once, the one whose answer is used counts", () => {
  using clock = new HeldClock(0);
  const waits = new AskedUpstreams();
  const fromMs = clock.nowMs();
  const [a, b] = ["a", "b"].map((upstream) => waits.begin("path", upstream));
  clock.advance(20);
  a?.();
  clock.advance(280);
  b?.();
  clock.advance(5);
  assert.deepEqual(told(waits, "path", fromMs, clock.nowMs()), [["b", 5], ["b", 300]]);
});

Deno.test("asked upstreams: one that is let go has been waited for, unless another was quicker", () => {
  using clock = new HeldClock(0);
  const waits = new AskedUpstreams();
  const fromMs = clock.nowMs();
  const [late, found] = ["late", "found"].map((upstream) => waits.begin("path", upstream));
  clock.advance(20);
  found?.();
  clock.advance(300);
  late?.("lost");
  assert.deepEqual(told(waits, "path", fromMs, clock.nowMs()), [["late", 320]]);

  const againMs = clock.nowMs();
  const [best, worse] = ["best", "worse"].map((upstream) => waits.begin("path", upstream));
  clock.advance(200);
  best?.();
  clock.advance(1);
  worse?.("lost");
  clock.advance(1);
  assert.deepEqual(told(waits, "path", againMs, clock.nowMs()), [["best", 2], ["best", 200]]);
});

Deno.test("asked upstreams: a source that is asked late counts from then on", () => {
  using clock = new HeldClock(0);
  const waits = new AskedUpstreams();
  const fromMs = clock.nowMs();
  const slow = waits.begin("file.nar.xz", "slow");
  clock.advance(2_000);
  waits.begin("file.nar.xz", "second");
  clock.advance(100);
  slow("lost");
  clock.advance(50);
  const all = [["second", 150], ["slow", 2_000]];
  assert.deepEqual(told(waits, "file.nar.zst", fromMs, clock.nowMs()), all, "under any name");
  assert.deepEqual(told(waits, "other.nar.xz", fromMs, clock.nowMs()), []);
});

Deno.test("asked upstreams: what ended before a request began is none of its waits", () => {
  using clock = new HeldClock(0);
  const waits = new AskedUpstreams();
  waits.begin("file.nar.xz", "former")();
  assert.deepEqual(told(waits, "file.nar.xz", clock.nowMs() + 1, clock.nowMs() + 9), []);
  for (let count = 0; count < 5_000; count++) waits.begin(`${count}`, "a")();
  const fromMs = clock.nowMs();
  waits.begin("file.nar.xz", "now");
  for (let count = 0; count < 5_000; count++) waits.begin(`${count}`, "a")();
  clock.advance(9);
  assert.deepEqual(told(waits, "file.nar.xz", fromMs, clock.nowMs()), [["now", 9]]);
});
