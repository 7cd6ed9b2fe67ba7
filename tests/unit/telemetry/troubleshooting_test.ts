import assert from "node:assert/strict";
import { parse } from "yaml";
import { EVENTS } from "../../../src/telemetry/events.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;
const PAGE = Deno.readTextFileSync(`${ROOT}docs/troubleshooting.md`);

interface AlertFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert?: string }[] }[];
}

Deno.test("docs/troubleshooting.md: it says what to do about each warning and error", () => {
  const messages = Object.values(EVENTS).filter(({ level }) => level !== "info")
    .map(({ words }) => words);
  const missing = messages.filter((message) => {
    return !PAGE.includes(`\`${message}\``) && !PAGE.includes(`#### ${message}\n`);
  });
  assert.deepEqual(missing, []);
});

Deno.test("docs/troubleshooting.md: each alert has a heading, to which runbooks may link", () => {
  const { groups } = parse(Deno.readTextFileSync(`${ROOT}docs/prometheus/alerts.yml`)) as AlertFile;
  const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => alert ?? []));
  assert.ok(alerts.length > 10, "the alerts are found");
  assert.deepEqual(alerts.filter((alert) => !PAGE.includes(`\n### ${alert}\n`)), []);
});
