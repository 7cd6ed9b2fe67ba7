import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { FaultProxy } from "../support/fault_proxy.ts";
import { freePort } from "../support/free_port.ts";
import type { LarderProcess } from "../support/larder_process.ts";
import { MuteReceiver } from "../support/mute_receiver.ts";
import { droppedCounts, pull, SIGNALS, startOtelLarder, stop } from "../support/otel_larder.ts";
import { Collector, COLLECTOR_UNAVAILABLE } from "../support/otelcol.ts";
import { recordsOf, spansOf } from "../support/otlp.ts";
import { testUnless } from "../support/program.ts";
import { makeStoreObject } from "../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 2_000_000 });
const other = makeStoreObject({ name: "other-1.0", size: 20_000 });

/** Metrics are sent at once, again and again. */
const OFTEN = { OTEL_METRIC_EXPORT_INTERVAL: "100" };

function upstreamOf(): Promise<FakeUpstream> {
  return fakeUpstream({ objects: [object, other], stored: true });
}

/** More requests than the queues hold records. Each is answered. */
async function load(larder: LarderProcess): Promise<void> {
  for (let round = 0; round < 150; round++) {
    await Promise.all(Array.from({ length: 40 }, async () => {
      const answer = await fetch(`${larder.url}/${object.storePathHash}.narinfo`);
      await answer.text();
      assert.equal(answer.status, 200);
    }));
  }
}

/** A receiver like this costs no client anything, and every signal's loss is said once. */
async function assertHarmless(url: string): Promise<void> {
  await using upstream = await upstreamOf();
  await using larder = await startOtelLarder(upstream, url, OFTEN);
  await pull(larder, object, { "x-request-id": "build-7" });
  await load(larder);
  for (const signal of SIGNALS) {
    const said = await larder.logged("telemetry dropped", (line) => line["signal"] === signal);
    assert.equal(said["receiver"], url);
    assert.match(
      String(said["reason"]),
      /no answer within 2\.5s|4096 records wait|^Cannot export telemetry: /,
    );
  }
  assert.ok((await droppedCounts(larder)).every((count) => count > 0));
  await stop(larder);
  assert.equal(larder.lines.filter(({ msg }) => msg === "telemetry dropped").length, 3);
}

Deno.test("otel: an absent receiver is said once, and costs nothing", async () => {
  await assertHarmless(`http://127.0.0.1:${freePort()}`);
});

Deno.test("otel: a receiver that never reads is said once, and costs nothing", async () => {
  await using receiver = new MuteReceiver();
  await assertHarmless(receiver.url);
});

testUnless(COLLECTOR_UNAVAILABLE, "otel: a frozen collector costs nothing", async () => {
  await using collector = await Collector.start();
  collector.kill("SIGSTOP");
  await assertHarmless(collector.url);
});

testUnless(COLLECTOR_UNAVAILABLE, "otel: telemetry for a slow receiver is not lost", async () => {
  await using collector = await Collector.start();
  await using upstream = await upstreamOf();
  await using slow = new FaultProxy({ targetPort: Number(new URL(collector.url).port) });
  slow.pause();
  await using larder = await startOtelLarder(upstream, slow.url, OFTEN);
  await pull(larder, object, { "x-request-id": "build-7" });
  // All three signals are in flight, or wait for the one before.
  await eventually("it was connected to", () => slow.connectionCount > 0);
  slow.resume();
  await stop(larder);
  await collector.stop();
  const spans = spansOf(collector.received("traces"));
  assert.ok(spans.some(({ facts }) => facts["larder.request_id"] === "build-7"));
  const messages = recordsOf(collector.received("logs")).map(({ msg }) => msg);
  assert.ok(messages.includes("nar cached successfully") && messages.includes("server shutdown"));
  assert.ok(collector.received("metrics").length > 0);
});

testUnless(
  COLLECTOR_UNAVAILABLE,
  "otel: a receiver that is back gets new metrics, and its next outage is said",
  async () => {
    await using collector = await Collector.start();
    await using upstream = await upstreamOf();
    await using flaky = new FaultProxy({ targetPort: Number(new URL(collector.url).port) });
    await using larder = await startOtelLarder(upstream, flaky.url, OFTEN);
    const dropped = () => larder.lines.filter(({ msg }) => msg === "telemetry dropped");
    const outages = () => dropped().filter(({ signal }) => signal === "metrics").length;
    let arrived = 0;
    const metricsArrive = () => {
      const before = arrived;
      arrived = collector.metricsBytes();
      return arrived > before;
    };
    const setRefusing = (isRefusing: boolean) => {
      flaky.isRefusing = isRefusing;
      flaky.cutAll();
    };
    for (const outage of ["first", "next"]) {
      await eventually("metrics arrive", metricsArrive);
      const said = outages();
      setRefusing(true);
      await eventually(`the ${outage} outage is said`, () => outages() > said);
      setRefusing(false);
      // The first metrics may be from before the outage: the collector writes now and then.
      for (const _ of ["first", "second"]) await eventually("metrics arrive again", metricsArrive);
    }
    await pull(larder, other, { "x-request-id": "build-8" });
    await stop(larder);
    await collector.stop();
    const spans = spansOf(collector.received("traces"));
    assert.ok(spans.some(({ facts }) => facts["larder.request_id"] === "build-8"));
  },
);
