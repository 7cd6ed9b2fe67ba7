import assert from "node:assert/strict";
import { reportUsage, usageReport, usageReportText } from "../../../src/app/usage_report.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { playRuntime } from "../../../src/runtime/current.ts";
import { createLogger, SILENT } from "../../../src/telemetry/logger.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { inputsOf } from "../../support/config_inputs.ts";

const DOCS = new URL("../../../docs/observability.md", import.meta.url).pathname;

function settingsOf(...args: readonly string[]) {
  return resolveSettings(inputsOf({ args, hostname: "my-build-host" })).settings;
}

/** A receiver of reports; `arrived`: its first one. */
function openReceiver() {
  const arrived = Promise.withResolvers<string>();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (one) => {
      const { host: _, ...headers } = Object.fromEntries(one.headers);
      arrived.resolve(JSON.stringify(headers) + "\n" + await one.text());
      return new Response();
    },
  );
  return {
    flag: `--analytics-reporting-url=http://127.0.0.1:${server.addr.port}`,
    arrived: arrived.promise,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("analytics: nothing is sent by default, now or later", () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const flag = "--analytics-reporting-url=http://127.0.0.1:1";
  using _usage = reportUsage(settingsOf(flag), SILENT);
  assert.equal(played.pending, 0);
  using _enabled = reportUsage(settingsOf(flag, "--analytics-reporting-enabled"), SILENT);
  assert.equal(played.pending, 1);
});

Deno.test("analytics: the sent report is the one that --show prints, without names", async () => {
  await using receiver = openReceiver();
  const secret = "--cache-upstream-url=https://me:pa55@cache.example.org";
  const settings = settingsOf("--analytics-reporting-enabled", secret, receiver.flag);
  const answered = Promise.withResolvers<void>();
  const log = createLogger("debug", {
    write: (line) => void (/usage report sent/.test(line) && answered.resolve()),
  });
  const usage = reportUsage(settings, log, 200);
  const sent = await receiver.arrived;
  usage[Symbol.dispose]();
  await answered.promise;
  assert.equal(sent.slice(sent.indexOf("\n") + 1), usageReportText(settings));
  for (const word of ["my-build-host", "example", "pa55", "me:"]) {
    assert.ok(!sent.includes(word), word);
  }
});

Deno.test("analytics: every field is documented", () => {
  const text = Deno.readTextFileSync(DOCS);
  for (const field of Object.keys(usageReport(settingsOf()))) {
    assert.ok(text.includes(`| \`${field}\` |`), field);
  }
});
