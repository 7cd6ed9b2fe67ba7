import assert from "node:assert/strict";
import { usageReportText } from "../../../src/app/usage_report.ts";
import { type CommandProcess, denoProcess } from "../../../src/cli/command_process.ts";
import { run } from "../../../src/cli/run.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";

async function analytics(...args: readonly string[]) {
  let out = "";
  let error = "";
  const host: CommandProcess = {
    ...denoProcess(),
    ...inputsOf(),
    writeOut: (text: string) => void (out += text),
    writeError: (text: string) => void (error += text),
  };
  const status = await run(["analytics", ...args], host);
  return { status, out, error };
}

Deno.test("larder analytics --show: the report, and whether it is sent", async () => {
  const { settings } = resolveSettings(inputsOf());
  const off = await analytics("--show");
  assert.deepEqual(off, {
    status: 0,
    out: usageReportText(settings),
    error: "Not sent; it would be:\n",
  });
  const url = "https://usage.example.org";
  const on = ["--analytics-reporting-enabled", `--analytics-reporting-url=${url}`];
  assert.equal((await analytics("--show", ...on)).error, `Sent once a day to ${url}:\n`);
  assert.match(
    (await analytics("--show", on[0] ?? "")).error,
    /^larder: --analytics-reporting-enabled: has no effect [^\n]*\nNot sent; it would be:\n$/,
  );
});

Deno.test("larder analytics: without --show it ends with status 2", async () => {
  assert.equal((await analytics()).status, 2);
});
