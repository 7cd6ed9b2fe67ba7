import assert from "node:assert/strict";
import { asSent, PANELS } from "../support/dashboard.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { programsMissing, runWithInput, testUnless } from "../support/program.ts";
import { Prometheus } from "../support/prometheus.ts";
import { makeStoreObject } from "../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const DOCS = new URL("../../docs/", import.meta.url).pathname;

testUnless(
  programsMissing("prometheus"),
  "prometheus: it scrapes a running larder, and answers every panel of the dashboard",
  async () => {
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using larder = await startLarder({
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "prometheus-enabled": "true",
      "cache-max-size": "1G",
    });
    await using prometheus = await Prometheus.start([`127.0.0.1:${larder.port}`]);
    const url = `${larder.url}/${object.storePathHash}.narinfo`;
    for (let count = 0; count < 4; count++) await (await fetch(url)).text();

    const hits = 'larder_cache_requests_total{kind="narinfo",result="hit"}';
    // A scrape that is late leaves none of these values until the next one.
    const knows = (expression: string, value: number) =>
      eventually(`Prometheus knows ${expression}`, async () => (
        await prometheus.query(expression) === value
      ));
    await knows(hits, 3);
    await knows('larder_cache_requests_total{result="miss"} > 0', 1);
    await knows("count(larder_build_info)", 1);
    for (const { title, targets = [], fieldConfig } of PANELS) {
      await eventually(`${title} is as the dashboard says`, async () => {
        const found = await Promise.all(
          targets.map(({ expr }) => prometheus.query(asSent(expr, "1m"))),
        );
        return found.some((value) => value === undefined) ===
          (fieldConfig?.defaults.noValue !== undefined);
      });
    }
  },
);

testUnless(
  programsMissing("promtool"),
  "prometheus: promtool accepts the alerts",
  async () => {
    const path = `${DOCS}prometheus/alerts.yml`;
    const { code, output } = await runWithInput("promtool", ["check", "rules", path], "");
    assert.equal(code, 0, output);
  },
);

testUnless(
  programsMissing("promtool"),
  "prometheus: each alert fires when it should, and not before",
  async () => {
    const path = `${DOCS}prometheus/alerts_test.yml`;
    const { code, output } = await runWithInput("promtool", ["test", "rules", path], "");
    assert.equal(code, 0, output);
    const alerts = Deno.readTextFileSync(`${DOCS}prometheus/alerts.yml`).matchAll(/alert: (\w+)/g);
    const tested = Deno.readTextFileSync(path);
    for (const [, alert] of alerts) assert.ok(tested.includes(`alertname: ${alert}\n`), alert);
  },
);
