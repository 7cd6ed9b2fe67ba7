import assert from "node:assert/strict";
import fc from "fast-check";
import type { NoAnswerReason } from "../../../src/upstream/upstream.ts";
import {
  looksUp,
  nextHealth,
  probeDueAtMs,
  probeForRequest,
  type UpstreamHealth,
  waitOf,
} from "../../../src/upstream/upstream_health.ts";
import { checkProperty } from "../../support/property.ts";

const REASON = fc.constantFrom<NoAnswerReason>("timeout", "unreachable");
const RESULT = fc.option(REASON, { nil: undefined, freq: 12 });

const STEP = fc.oneof(
  fc.record({ type: fc.constant("request" as const), result: RESULT }),
  fc.record({ type: fc.constant("look" as const), result: RESULT }),
  fc.record({ type: fc.constant("join" as const) }),
  fc.record({ type: fc.constant("probe-end" as const), result: RESULT }),
  fc.record({ type: fc.constant("wait" as const), ms: fc.constantFrom(1, 400, 1_000, 3_000) }),
);
type Step = typeof STEP extends fc.Arbitrary<infer Value> ? Value : never;

checkProperty(
  "upstream health: any events keep the promises of probes",
  fc.property(fc.array(STEP, { maxLength: 100, size: "max" }), (steps) => {
    const played = new PlayedHealth();
    for (const step of steps) played.take(step);
  }),
);

Deno.test("upstream health: a look at the priority alone makes no upstream down", () => {
  const played = new PlayedHealth();
  for (let count = 0; count < 10; count++) played.take({ type: "look", result: "timeout" });
  assert.equal(played.health.state, "failing");
});

Deno.test("upstream health: a silent one is waited for again after four seconds", () => {
  const down: UpstreamHealth = {
    ...{ state: "down", reason: "timeout", pauseMs: 1_000, probes: 0 },
    ...{ probedAtMs: 0, awaitedAtMs: 0, probeDueAtMs: 0 },
  };
  const probes = [999, 1_000, 3_999, 4_000].map((nowMs) => probeForRequest(down, nowMs));
  assert.deepEqual(probes, [undefined, "beside", "beside", "awaited"]);
});

Deno.test("upstream health: it shows as up until a request fails, and after an answer", () => {
  const played = new PlayedHealth();
  const shown = [looksUp(played.health)];
  for (const result of [undefined, "unreachable", "unreachable", undefined] as const) {
    played.take({ type: "request", result });
    shown.push(looksUp(played.health));
  }
  assert.deepEqual(shown, [true, true, false, false, true]);
});

for (const reason of ["timeout", "unreachable"] as const) {
  const wait = reason === "timeout" ? "short" : "full";
  Deno.test(`upstream health: after an answer, one ${reason} allows a ${wait} wait`, () => {
    const played = new PlayedHealth();
    assert.equal(waitOf(played.health), "short");
    played.take({ type: "request", result: undefined });
    assert.equal(waitOf(played.health), "full");
    played.take({ type: "request", result: reason });
    assert.equal(waitOf(played.health), wait);
  });
}

/** An upstream's health on a clock of its own. Every step checks the promises. */
class PlayedHealth {
  health: UpstreamHealth = { state: "unknown" };
  #nowMs = 0;
  /** Requests without an answer, since the last answer. */
  #failures = 0;
  /** When each probe in flight began. */
  #probes: number[] = [];
  /** When requests last began to wait: for a probe, or for the answer that made it go down. */
  #awaitedAtMs = 0;
  /** The longest time until the next probe, by how the last one ended. */
  #pauseMaxMs = 0;

  take(step: Step): void {
    switch (step.type) {
      case "wait":
        return this.#wait(step.ms);
      case "join":
        return this.#join();
      case "probe-end":
        return this.#endProbe(step.result);
      default:
        return this.#note(step.result, step.type === "request" ? 1 : 0);
    }
  }

  #note(result: NoAnswerReason | undefined, failures: number): void {
    if (result === undefined) return this.#answer();
    const wasDown = this.#isDown;
    const due = probeDueAtMs(this.health);
    this.#failures += failures;
    const atMs = this.#nowMs;
    this.health = nextHealth(this.health, { type: "no-answer", reason: result, failures, atMs });
    // Requests in flight as it went down do not delay the probes.
    if (wasDown) assert.equal(probeDueAtMs(this.health), due);
    else [this.#pauseMaxMs, this.#awaitedAtMs] = [1_000, this.#nowMs];
    this.#check();
  }

  #answer(): void {
    this.health = nextHealth(this.health, { type: "answer" });
    this.#failures = 0;
    this.#probes = [];
    assert.equal(this.health.state, "up");
    this.#check();
  }

  #join(): void {
    const probe = probeForRequest(this.health, this.#nowMs);
    if (!this.#isDown) return assert.equal(probe, undefined);
    // Requests wait for a silent upstream a fifth of the time at most: 800 ms in 4 s.
    const isNotAwaited = waitOf(this.health) === "none";
    if (isNotAwaited && probe === "awaited") assert.ok(this.#nowMs - this.#awaitedAtMs >= 4_000);
    if (probe !== undefined) this.#probe(probe === "awaited");
    else if (this.#probes.length > 0) assert.ok(this.#nowMs - Math.max(...this.#probes) < 1_000);
    else assert.equal(waitOf(this.health), "none");
  }

  #probe(isAwaited: boolean): void {
    for (const startedAtMs of this.#probes) assert.ok(this.#nowMs - startedAtMs >= 1_000);
    this.#probes.push(this.#nowMs);
    if (isAwaited) this.#awaitedAtMs = this.#nowMs;
    this.health = nextHealth(this.health, { type: "probe", isAwaited, atMs: this.#nowMs });
    this.#check();
  }

  #endProbe(result: NoAnswerReason | undefined): void {
    if (this.#probes.shift() === undefined) return;
    if (result === undefined) return this.#answer();
    this.#pauseMaxMs = result === "unreachable" ? 1_000 : 5_000;
    const atMs = this.#nowMs;
    this.health = nextHealth(this.health, { type: "probe-failure", reason: result, atMs });
    this.#check();
  }

  /** Probes start when they are due, and none while another is in flight. */
  #wait(ms: number): void {
    const untilMs = this.#nowMs + ms;
    const dueAtMs = probeDueAtMs(this.health);
    if (dueAtMs !== undefined && dueAtMs <= untilMs) {
      this.#nowMs = dueAtMs;
      assert.equal(this.#probes.length, 0);
      this.#probe(true);
    }
    this.#nowMs = untilMs;
  }

  get #isDown(): boolean {
    return this.health.state === "down";
  }

  #check(): void {
    assert.equal(this.#isDown, this.#failures >= 3);
    const dueAtMs = probeDueAtMs(this.health);
    assert.equal(dueAtMs !== undefined, this.#isDown && this.#probes.length === 0);
    if (dueAtMs === undefined) return;
    const pauseMs = dueAtMs - this.#nowMs;
    assert.ok(pauseMs >= 0 && pauseMs <= this.#pauseMaxMs, `${pauseMs} ms`);
  }
}
