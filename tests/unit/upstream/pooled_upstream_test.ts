import assert from "node:assert/strict";
import { PooledUpstream } from "../../../src/upstream/pooled_upstream.ts";
import {
  ForeignStore,
  NoAnswer,
  type NoAnswerReason,
  type QueuedNarinfoSource,
  type QueuedReading,
} from "../../../src/upstream/upstream.ts";
import { PlayedTime } from "../../support/played_time.ts";

const HOUR_MS = 3_600_000;
const TIMEOUT_MS = 3_000;

for (const awayMs of [8_000, 40_000, HOUR_MS]) {
  Deno.test(`pool: after ${awayMs / 1_000} s of refusal it is up within a second`, async () => {
    using time = new PlayedTime();
    using upstream = new PlayedUpstream(time);
    upstream.goDown("unreachable");
    await time.advance(awayMs);
    upstream.answers = true;
    await time.advance(1_000);
    assert.equal(upstream.pooled.isDown("narinfo"), false);
    assert.deepEqual(upstream.changes, [true, false]);
  });
}

Deno.test("pool: a refused connection is tried each second, and no more often", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.goDown("unreachable");
  await time.advance(60_000);
  assert.deepEqual(upstream.gapsMs(), Array(59).fill(1_000));
});

Deno.test("pool: the pauses after timeouts grow to five seconds", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.goDown("timeout");
  await time.advance(60_000);
  const pausesMs = upstream.gapsMs().map((gapMs) => gapMs - TIMEOUT_MS);
  assert.deepEqual(pausesMs.slice(0, 4), [2_000, 4_000, 5_000, 5_000]);
  assert.ok(pausesMs.slice(4).every((pauseMs) => pauseMs === 5_000));
});

Deno.test("pool: late timeouts of earlier requests do not delay the probes", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  for (let late = 0; late < 200; late++) upstream.pooled.note("narinfo", "timeout");
  await time.advance(1_000);
  assert.equal(upstream.probedAtMs.length, 1);
});

Deno.test("pool: the failures of one kind take nothing from another", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  for (let count = 0; count < 10; count++) upstream.pooled.note("nar", "timeout");
  upstream.pooled.note("narinfo", "timeout");
  assert.deepEqual(upstream.pooled.healthOf("document"), { state: "unknown" });
  assert.deepEqual(["nar", "narinfo"].map((kind) => upstream.pooled.isDown(kind as "nar")), [
    ...[true, false],
  ]);
  upstream.answers = true;
  await time.advance(1_000);
  assert.equal(upstream.pooled.isDown("nar"), false);
  assert.deepEqual(upstream.changes, [true, false]);
});

Deno.test("pool: kinds that are down together share their probes", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.goDown("timeout");
  for (const kind of ["nar", "document"] as const) {
    for (let count = 0; count < 3; count++) upstream.pooled.note(kind, "timeout");
  }
  await time.advance(1_000);
  assert.equal(upstream.probedAtMs.length, 1);
  upstream.answers = true;
  await time.advance(TIMEOUT_MS + 2_000);
  assert.deepEqual([upstream.probedAtMs.length, upstream.changes], [2, [true, false]]);
});

Deno.test("pool: any answer brings it back, not only that of a probe", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.goDown("timeout");
  upstream.pooled.note("narinfo", undefined);
  assert.equal(upstream.pooled.isDown("narinfo"), false);
  await time.advance(60_000);
  assert.deepEqual(upstream.probedAtMs, []);
});

Deno.test("pool: a probe of an outage that is over does not delay the next", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.goDown("timeout");
  await time.advance(1_000);
  upstream.pooled.note("narinfo", undefined);
  upstream.goDown("unreachable");
  await time.advance(1_000);
  assert.equal(upstream.probedAtMs.length, 2);
});

Deno.test("pool: a hundred requests share one probe, and wait for it together", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.goDown("timeout");
  await time.advance(1_000);
  let waiting = 100;
  for (let count = waiting; count > 0; count--) {
    upstream.pooled.probed("narinfo").then(() => waiting--);
  }
  await time.advance(799);
  assert.equal(waiting, 100);
  await time.advance(1);
  assert.equal(waiting, 0);
  assert.equal(upstream.probedAtMs.length, 1);
});

Deno.test("pool: of ten minutes of silence requests wait for a quarter", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.goDown("timeout");
  let waitedMs = 0;
  for (const endMs = time.nowMs + 600_000; time.nowMs < endMs;) {
    const startedAtMs = time.nowMs;
    let isOver = false;
    upstream.pooled.probed("narinfo").then(() => isOver = true);
    for (await time.settled(); !isOver;) await time.advance(50);
    waitedMs += time.nowMs - startedAtMs;
    await time.advance(50);
  }
  assert.ok(waitedMs < 600_000 / 4, `${waitedMs} ms`);
});

Deno.test("pool: one that ends probes no more", async () => {
  using time = new PlayedTime();
  const upstream = new PlayedUpstream(time);
  upstream.goDown("unreachable");
  upstream[Symbol.dispose]();
  await upstream.pooled.probed("narinfo");
  await time.advance(60_000);
  assert.deepEqual(upstream.probedAtMs, []);
});

Deno.test("pool: an upstream of another store directory is used once it has ours", async () => {
  using time = new PlayedTime();
  using upstream = new PlayedUpstream(time);
  upstream.isForeign = true;
  await upstream.pooled.probeAtStart();
  const { pooled } = upstream;
  assert.deepEqual(
    [pooled.isDown("narinfo"), pooled.looksUp("narinfo"), pooled.waitOf("narinfo")],
    [
      true,
      false,
      "none",
    ],
  );
  await time.advance(6_000);
  assert.deepEqual([pooled.isDown("narinfo"), upstream.probedAtMs.length], [true, 2]);
  upstream.isForeign = false;
  upstream.answers = true;
  await time.advance(6_000);
  assert.deepEqual(
    [pooled.isDown("narinfo"), pooled.looksUp("narinfo"), pooled.waitOf("narinfo")],
    [
      false,
      true,
      "full",
    ],
  );
});

/** Refuses or says nothing for the whole timeout, until it `answers`. */
class PlayedUpstream implements QueuedNarinfoSource, Disposable {
  readonly url = "http://upstream.test";
  readonly priority = undefined;
  readonly changes: boolean[] = [];
  readonly probedAtMs: number[] = [];
  readonly pooled: PooledUpstream;
  readonly #time: PlayedTime;
  #reason: NoAnswerReason = "unreachable";
  answers = false;
  isForeign = false;

  constructor(time: PlayedTime) {
    this.#time = time;
    this.pooled = new PooledUpstream(this, {
      changed: (isDown) => void this.changes.push(isDown),
      noted() {},
    });
  }

  goDown(reason: NoAnswerReason): void {
    this.#reason = reason;
    for (let count = 0; count < 3; count++) this.pooled.note("narinfo", reason);
  }

  /** Between one probe and the next. */
  gapsMs(): readonly number[] {
    return this.probedAtMs.slice(1).map((atMs, index) => atMs - (this.probedAtMs[index] ?? 0));
  }

  async describe(): Promise<number | undefined> {
    this.probedAtMs.push(this.#time.nowMs);
    if (this.isForeign) throw new ForeignStore("/gnu/store");
    if (this.answers) return 40;
    const reason = this.#reason;
    if (reason === "timeout") await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS));
    throw new NoAnswer(reason, "Cannot reach upstream");
  }

  narinfo(): Promise<QueuedReading> {
    return Promise.reject(new Error("Nobody asks it for a narinfo here"));
  }

  reach(): Promise<boolean> {
    return Promise.resolve(this.answers);
  }

  [Symbol.dispose](): void {
    this.pooled[Symbol.dispose]();
  }
}
