import assert from "node:assert/strict";
import { parse } from "yaml";
import { type Outage, OUTAGES } from "../../../src/telemetry/outages.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;
const PAGE = Deno.readTextFileSync(`${ROOT}docs/troubleshooting.md`);

/** Calls of a log with a message of their own. */
const MESSAGE_REGEXP = /\blog\.(?:warn|error)\(\s*"(?<message>[^"]+)"/g;

interface AlertFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert?: string }[] }[];
}

Deno.test("docs/troubleshooting.md: it says what to do about each warning and error", () => {
  const begins = Object.values<Outage>(OUTAGES).flatMap((outage) => Object.keys(outage.begins));
  const messages = new Set([...[...filesBelow(`${ROOT}src`)].flatMap(messagesIn), ...begins]);
  assert.ok(messages.size > 30, "the messages are found");
  const missing = [...messages].filter((message) => {
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

function messagesIn(path: string): readonly string[] {
  const text = Deno.readTextFileSync(path);
  return [...text.matchAll(MESSAGE_REGEXP)].map(({ groups }) => groups?.["message"] ?? "");
}

function* filesBelow(folder: string): Iterable<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) yield* filesBelow(`${folder}/${name}`);
    else if (name.endsWith(".ts")) yield `${folder}/${name}`;
  }
}
