import assert from "node:assert/strict";
import { reportUsage, usageReport, usageReportText } from "../../../src/app/usage_report.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { inputsOf } from "../../support/config_inputs.ts";

const log = createLogger("error", { write() {} });
const DOCS = new URL("../../../docs/observability.md", import.meta.url).pathname;
const EVERY_MS = 5;

function settingsOf(...args: readonly string[]) {
  return resolveSettings(inputsOf({ args, hostname: "my-build-host" })).settings;
}

/** The first report that a receiver gets, or "nothing" when none came for a while. */
async function reported(...args: readonly string[]): Promise<string> {
  const arrived = Promise.withResolvers<string>();
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (one) => {
      const { host: _, ...headers } = Object.fromEntries(one.headers);
      arrived.resolve(JSON.stringify(headers) + "\n" + await one.text());
      return new Response();
    },
  );
  const url = `--analytics-reporting-url=http://127.0.0.1:${server.addr.port}`;
  using _usage = reportUsage(settingsOf(url, ...args), log, EVERY_MS);
  const timer = setTimeout(() => arrived.resolve("nothing"), 40 * EVERY_MS);
  const text = await arrived.promise;
  clearTimeout(timer);
  return text;
}

Deno.test("analytics: nothing is sent by default", async () => {
  assert.equal(await reported(), "nothing");
});

Deno.test("analytics: the sent report is the one that --show prints, without names", async () => {
  const secret = "--cache-upstream-url=https://me:pa55@cache.example.org";
  const sent = await reported("--analytics-reporting-enabled", secret);
  const settings = settingsOf("--analytics-reporting-enabled", secret);
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
