import assert from "node:assert/strict";
import { startMetrics } from "../../../src/telemetry/otel/otel.ts";
import { eventually } from "../../support/eventually.ts";

Deno.test("metric export: while a receiver takes its time it gets no second copy", async () => {
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
    everyMs: 1,
    nowMs: Date.now,
  });
  const startedAtMs = performance.now();
  await eventually("several turns are over", () => performance.now() - startedAtMs > 30);
  assert.equal(asked, 1);
  gate.resolve();
  await exporting.stop();
  assert.equal(mostUnderWay, 1);
});
