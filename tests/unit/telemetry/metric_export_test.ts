import assert from "node:assert/strict";
import { startMetrics } from "../../../src/telemetry/otel/otel.ts";
import { playRuntime } from "../../../src/runtime/current.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";

Deno.test("metric export: while a receiver takes its time it gets no second copy", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const gate = Promise.withResolvers<void>();
  let underWay = 0;
  let mostUnderWay = 0;
  let asked = 0;
  const exporting = startMetrics({
    snapshot: () => [],
    async send() {
      asked++;
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      await gate.promise;
      underWay--;
    },
    dropped: () => assert.fail("nothing is lost"),
    delivered() {},
    everyMs: 10_000,
    nowMs: () => played.wallMs(),
  });
  await played.play(played.pause(100_000));
  assert.equal(asked, 1);
  gate.resolve();
  await played.play(exporting.stop());
  assert.equal(mostUnderWay, 1);
});
