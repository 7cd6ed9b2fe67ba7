import assert from "node:assert/strict";
import { backEndGauges } from "../../../src/app/start_telemetry.ts";
import { SILENT } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { prometheusText } from "../../../src/telemetry/prometheus.ts";
import { RecentProblems } from "../../../src/telemetry/recent_problems.ts";

/** A larder's problems, and what its gauges say. */
function scene({ kind, hasRedis = true }: { kind: "local" | "s3"; hasRedis?: boolean }) {
  const metrics = new Metrics();
  const problems = new RecentProblems(() => 0);
  backEndGauges({ metrics, problems, nars: { kind }, hasRedis });
  return {
    log: problems.watch(SILENT),
    async gauges(): Promise<string> {
      const text = await prometheusText(metrics.snapshot());
      const found = text.matchAll(/^larder_backend_up\{backend="(\w+)"\} (\d)$/gm);
      return [...found].map(([, name, value]) => `${name} ${value}`).join(", ");
    },
  };
}

const UP = "database 1, storage 1, redis 1";

Deno.test("back end gauges: each is 0 from the begin of its outage to its end", async () => {
  const { log, gauges } = scene({ kind: "s3" });
  assert.equal(await gauges(), UP);
  const outages = [
    ["database-away", "database-back", "database 0, storage 1, redis 1"],
    ["nar-store-away", "nar-store-back", "database 1, storage 0, redis 1"],
    ["redis-away", "redis-back", "database 1, storage 1, redis 0"],
  ] as const;
  for (const [begin, end, during] of outages) {
    log.event(begin);
    assert.equal(await gauges(), during);
    log.event(end);
    assert.equal(await gauges(), UP);
  }
});

Deno.test("back end gauges: two outages of one back end end with the last of them", async () => {
  const { log, gauges } = scene({ kind: "s3" });
  log.event("database-away");
  log.event("pins-not-read");
  log.event("database-back");
  assert.equal(await gauges(), "database 0, storage 1, redis 1");
  log.event("pins-read");
  assert.equal(await gauges(), UP);
});

Deno.test("back end gauges: an event is no outage, nor is a lock of another member", async () => {
  const { log, gauges } = scene({ kind: "s3" });
  log.event("download-failed", { error: "it broke" });
  log.event("lock-not-acquired", { reason: "timeout" });
  assert.equal(await gauges(), UP);
  log.event("redis-away");
  assert.equal(await gauges(), "database 1, storage 1, redis 0");
});

Deno.test("back end gauges: a full disk takes the store of a folder, and no bucket", async () => {
  for (const [kind, storage] of [["local", 0], ["s3", 1]] as const) {
    const { log, gauges } = scene({ kind, hasRedis: false });
    log.event("nars-not-kept", { detail: "No space left on device" });
    assert.equal(await gauges(), `database 1, storage ${storage}`);
    log.event("nars-kept");
    assert.equal(await gauges(), "database 1, storage 1");
  }
});
