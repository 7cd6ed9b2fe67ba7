import assert from "node:assert/strict";
import { backEndGauges } from "../../../src/app/back_end_gauges.ts";
import { SILENT } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { OUTAGES } from "../../../src/telemetry/outages.ts";
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
    ["database", "database does not answer", "database 0, storage 1, redis 1"],
    ["narStore", "nar store unavailable: nars pass through", "database 1, storage 0, redis 1"],
    ["redis", "circuit breaker open: Redis is unavailable", "database 1, storage 1, redis 0"],
  ] as const;
  for (const [row, begin, during] of outages) {
    log[OUTAGES[row].level](begin);
    assert.equal(await gauges(), during);
    log.info(OUTAGES[row].over);
    assert.equal(await gauges(), UP);
  }
});

Deno.test("back end gauges: two outages of one back end end with the last of them", async () => {
  const { log, gauges } = scene({ kind: "s3" });
  log.warn("database does not answer");
  log.warn("reading pins failed");
  log.info(OUTAGES.database.over);
  assert.equal(await gauges(), "database 0, storage 1, redis 1");
  log.info(OUTAGES.pins.over);
  assert.equal(await gauges(), UP);
});

Deno.test("back end gauges: an event is no outage, nor is a lock of another member", async () => {
  const { log, gauges } = scene({ kind: "s3" });
  log.error("download failed", { error: "it broke" });
  log.warn("failed to acquire lock", { reason: "timeout" });
  assert.equal(await gauges(), UP);
  log.warn("circuit breaker open: Redis is unavailable");
  assert.equal(await gauges(), "database 1, storage 1, redis 0");
});

Deno.test("back end gauges: a full disk takes the store of a folder, and no bucket", async () => {
  for (const [kind, storage] of [["local", 0], ["s3", 1]] as const) {
    const { log, gauges } = scene({ kind, hasRedis: false });
    log.error("nars cannot be kept: they pass through", { detail: "No space left on device" });
    assert.equal(await gauges(), `database 1, storage ${storage}`);
    log.info(OUTAGES.keeping.over);
    assert.equal(await gauges(), "database 1, storage 1");
  }
});
