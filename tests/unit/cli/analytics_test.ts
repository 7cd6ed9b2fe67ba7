import assert from "node:assert/strict";
import { usageReportText } from "../../../src/app/usage_report.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import { runLarder } from "../../support/run_larder.ts";

const analytics = (...args: readonly string[]) => runLarder(["analytics", ...args]);

Deno.test("larder analytics --show: the report, and whether it is sent", async () => {
  const { settings } = resolveSettings(inputsOf());
  const off = await analytics("--show");
  assert.deepEqual(off, {
    status: 0,
    out: usageReportText(settings),
    err: "Not sent; it would be:\n",
  });
  const url = "https://usage.example.org";
  const on = ["--analytics-reporting-enabled", `--analytics-reporting-url=${url}`];
  assert.equal((await analytics("--show", ...on)).err, `Sent once a day to ${url}:\n`);
  assert.match(
    (await analytics("--show", on[0] ?? "")).err,
    /^larder: --analytics-reporting-enabled: has no effect [^\n]*\nNot sent; it would be:\n$/,
  );
});

Deno.test("larder analytics: without --show it ends with status 2", async () => {
  assert.equal((await analytics()).status, 2);
});
