import assert from "node:assert/strict";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { Metrics, operationMeter } from "../../../src/telemetry/metrics.ts";
import { prometheusText } from "../../../src/telemetry/prometheus.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { Scrape } from "../../support/scrape.ts";

const TOTAL = "larder_backend_operations_total";
const DURATION = "larder_backend_operation_duration_seconds";

async function scraped(metrics: Metrics): Promise<Scrape> {
  return new Scrape(await prometheusText(metrics.snapshot()));
}

Deno.test("operation meter: a back end's series exist with 0 before its first operation", async () => {
  const metrics = new Metrics();
  assert.doesNotMatch((await scraped(metrics)).text, /backend="redis"/);
  operationMeter(metrics, "redis");
  const { text } = await scraped(metrics);
  assert.match(text, /^larder_backend_operations_total\{.*"acquire",outcome="ok"\} 0$/m);
  assert.match(text, /^larder_backend_operations_total\{.*"acquire",outcome="failed"\} 0$/m);
  assert.doesNotMatch(text, /backend="(database|storage)"/);
});

Deno.test("operation meter: operations count by outcome, an answer is no failure", async () => {
  const metrics = new Metrics();
  const meter = operationMeter(metrics, "storage");
  const absent = new Error("absent");
  const left = AbortSignal.abort(new Error("the client left"));
  const late = AbortSignal.abort(new DOMException("no answer within 5.0s", "TimeoutError"));
  const fails = (error: unknown) => () => Promise.reject(error);
  const isAnswer = (error: unknown) => error === absent;

  assert.equal(await meter.run("open", () => Promise.resolve(7), { isAnswer }), 7);
  for (
    const [error, facts] of [
      [absent, { isAnswer }],
      [new Error("refused"), { isAnswer }],
      [left.reason, { signal: left }],
      [late.reason, { signal: late }],
    ] as const
  ) {
    await assert.rejects(meter.run("open", fails(error), facts), (thrown) => thrown === error);
  }

  const open = (outcome: string) => `{backend="storage",operation="open",outcome="${outcome}"}`;
  const after = await scraped(metrics);
  assert.deepEqual(after.nonZero(TOTAL), {
    [open("ok")]: 2,
    [open("failed")]: 2,
    [open("cancelled")]: 1,
  });
  assert.deepEqual(after.nonZero(`${DURATION}_count`), {
    '{backend="storage",operation="open"}': 4,
  });
});

Deno.test("operation meter: the duration of a failure counts like that of an answer", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const metrics = new Metrics();
  const meter = operationMeter(metrics, "database");
  await played.play((async () => {
    await meter.run("read", () => clock.pause(20));
    await assert.rejects(meter.run("read", async () => {
      await clock.pause(8_000);
      throw new Error("it does not answer");
    }));
  })());
  const labels = '{backend="database",operation="read"}';
  assert.equal((await scraped(metrics)).value(`${DURATION}_sum${labels}`), 8.02);
});
