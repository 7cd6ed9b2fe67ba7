import assert from "node:assert/strict";
import { CircuitBreaker } from "../../../src/locks/redis/redis_locks.ts";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics, operationMeter } from "../../../src/telemetry/metrics.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { PlayedTime } from "../../support/played_time.ts";

const silent = () => new Promise<never>(() => {});

/** A breaker, and the number of its probes, which fail until `mend`. */
function scene({ failure }: { failure?: Error } = {}) {
  const messages: string[] = [];
  const hints: unknown[] = [];
  const metrics = new Metrics();
  let [probes, isMended, answers, closings] = [0, false, 0, 0];
  const breaker = new CircuitBreaker({
    failure: () => failure,
    answered: () => void answers++,
    closed: () => void closings++,
    probe: () => {
      probes++;
      return isMended ? Promise.resolve() : silent();
    },
    meter: operationMeter(metrics, "redis"),
    log: createLogger("debug", {
      write(line) {
        const { msg, hint } = JSON.parse(line);
        messages.push(msg);
        if (hint !== undefined) hints.push(hint);
      },
    }),
  });
  const counted = (operation: "read" | "probe", outcome: "ok" | "failed") =>
    metrics.value("backend_operations_total", { backend: "redis", operation, outcome });
  return {
    ...{ breaker, messages, hints, counted, mend: () => void (isMended = true) },
    ...{ probes: () => probes, heard: () => ({ answers, closings }) },
  };
}

/** The message of a command's failure, and how long it took. */
async function failed(run: Promise<unknown>): Promise<readonly [string, number]> {
  const startedAtMs = clock.nowMs();
  const message = await run.then(() => "it did not fail", (error: Error) => error.message);
  return [message, clock.nowMs() - startedAtMs];
}

Deno.test("circuit breaker: a silent Redis costs two commands a second each, no other", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const { breaker, messages, mend, probes } = scene();
  await played.play((async () => {
    const late = "Cannot use locks: Command timed out";
    assert.deepEqual(await failed(breaker.run("read", silent)), [late, 1_000]);
    assert.deepEqual(await failed(breaker.run("read", silent)), [late, 1_000]);
    const isOpen = "Cannot use locks: Redis is unavailable";
    assert.deepEqual(await failed(breaker.run("read", silent)), [isOpen, 0]);

    // A probe each second, of which a silent one takes a second.
    await clock.pause(5_500);
    assert.equal(probes(), 3);
    mend();
    await clock.pause(2_000);
    assert.equal(await breaker.run("read", () => Promise.resolve("OK")), "OK");
    assert.deepEqual(messages, [
      "circuit breaker open: Redis is unavailable",
      ...Array(3).fill("Redis does not answer"),
      "circuit breaker closed: Redis is available again",
    ]);
  })());
});

Deno.test("circuit breaker: each answer is told, and each end of an outage", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const { breaker, hints, mend, heard } = scene();
  await played.play((async () => {
    await breaker.run("read", () => Promise.resolve("OK"));
    assert.deepEqual(heard(), { answers: 1, closings: 0 });
    for (let times = 0; times < 2; times++) await failed(breaker.run("read", silent));
    mend();
    await clock.pause(2_000);
    assert.deepEqual(heard(), { answers: 2, closings: 1 });
    assert.doesNotMatch(String(hints), /password/);
  })());
});

Deno.test("circuit breaker: commands that fail together open it once, with one probe", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const { breaker, messages, probes } = scene();
  await played.play((async () => {
    await Promise.all(Array.from({ length: 5 }, () => failed(breaker.run("read", silent))));
    assert.deepEqual(messages, ["circuit breaker open: Redis is unavailable"]);
    await clock.pause(1_500);
    assert.equal(probes(), 1);
  })());
});

Deno.test("circuit breaker: a refused login is told with its options", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const { breaker, hints } = scene({ failure: new Error("WRONGPASS invalid password") });
  await played.play((async () => {
    for (let times = 0; times < 2; times++) await failed(breaker.run("read", silent));
    assert.match(String(hints), /--cache-redis-password/);
  })());
});

Deno.test("circuit breaker: at its end it probes no more, and opens no more", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const [open, unused] = [scene(), scene()];
  await played.play((async () => {
    for (let times = 0; times < 2; times++) await failed(open.breaker.run("read", silent));
    open.breaker[Symbol.dispose]();
    unused.breaker[Symbol.dispose]();
    for (let times = 0; times < 2; times++) await failed(unused.breaker.run("read", silent));
    await clock.pause(10_000);
    assert.deepEqual([open.probes(), unused.probes(), unused.messages], [0, 0, []]);
  })());
});

Deno.test("circuit breaker: an answer that waits behind a standstill is no failure", async () => {
  using time = new PlayedTime();
  const { breaker } = scene();
  const { promise, resolve } = Promise.withResolvers<string>();
  const run = breaker.run("read", () => promise);
  time.standStill(10_000);
  await time.advance(1);
  resolve("OK");
  assert.equal(await run, "OK");
});

Deno.test("circuit breaker: commands and probes are counted, what never reached Redis is not", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const { breaker, mend, counted } = scene();
  await played.play((async () => {
    for (let times = 0; times < 5; times++) await failed(breaker.run("read", silent));
    assert.equal(counted("read", "failed"), 2);
    await clock.pause(5_500);
    assert.deepEqual([counted("probe", "failed"), counted("probe", "ok")], [2, 0]);
    mend();
    await clock.pause(2_000);
    await breaker.run("read", () => Promise.resolve("OK"));
    assert.deepEqual([counted("probe", "ok"), counted("read", "ok")], [1, 1]);
  })());
});
