import assert from "node:assert/strict";
import { parse } from "yaml";
import { slugOf } from "../../../scripts/docs/markdown.ts";
import { METHODS, OUTCOMES } from "../../../src/telemetry/instruments/http_labels.ts";
import { COUNTERS } from "../../../src/telemetry/instruments/counters.ts";
import { GAUGES } from "../../../src/telemetry/instruments/gauges.ts";
import { HISTOGRAMS } from "../../../src/telemetry/instruments/histograms.ts";
import type { Instrument } from "../../../src/telemetry/instruments/instrument.ts";

const DOCS = new URL("../../../docs/", import.meta.url).pathname;
const TABLES: readonly Readonly<Record<string, Instrument>>[] = [COUNTERS, GAUGES, HISTOGRAMS];
const ROWS = TABLES.flatMap((table) => Object.entries(table));
const NAME_REGEXP = /\b(?:larder|http_server|process)_[a-z_]+/g;

function fullName([name, row]: readonly [string, Instrument]): string {
  return row.plain ? name : `larder_${name}`;
}

const ROW_BY_NAME = new Map(ROWS.map((entry) => [fullName(entry), entry[1]]));

/** The row that a name in an expression stands for. */
function rowOf(name: string): Instrument | undefined {
  return ROW_BY_NAME.get(name) ?? ROW_BY_NAME.get(name.replace(/_(bucket|sum|count)$/, ""));
}

const WITH_NAMES = [
  "grafana/larder.json",
  "prometheus/alerts.yml",
  "prometheus/alerts_test.yml",
  "observability.md",
];

for (const path of WITH_NAMES) {
  const text = Deno.readTextFileSync(DOCS + path);

  Deno.test(`docs/${path}: it names no metric that does not exist`, () => {
    const unknown = [...text.matchAll(NAME_REGEXP)].map(([name]) => name)
      .filter((name) => rowOf(name) === undefined);
    assert.deepEqual(unknown, []);
  });

  Deno.test(`docs/${path}: it names no label value that does not exist`, () => {
    const selectors = text.replaceAll('\\"', '"').matchAll(/\b([a-z_]+)\{([^{}]*)\}/g);
    for (const [, name = "", selector = ""] of selectors) {
      const labels = rowOf(name)?.labels;
      if (labels === undefined) continue;
      for (const [, label = "", given = ""] of selector.matchAll(/(\w+)(?:=|!=|=~|!~)"([^"]*)"/g)) {
        const values = labels[label];
        if (!Array.isArray(values) || values.length === 0) continue;
        for (const value of given.split("|")) assert.ok(values.includes(value), `${name} ${value}`);
      }
    }
  });
}

Deno.test("docs/observability.md: it tells of every metric", () => {
  const text = Deno.readTextFileSync(`${DOCS}observability.md`);
  assert.deepEqual(ROWS.map(fullName).filter((name) => !text.includes(`\`${name}\``)), []);
});

Deno.test("docs/prometheus/alerts.yml: each alert has a description, and a section of help", () => {
  const { groups } = parse(Deno.readTextFileSync(`${DOCS}prometheus/alerts.yml`));
  const help = Deno.readTextFileSync(`${DOCS}troubleshooting.md`);
  for (const { alert, annotations } of groups.flatMap(({ rules }: { rules: Alert[] }) => rules)) {
    const { description, runbook_url } = annotations;
    assert.match(description, /^\S.+\.$/, alert);
    assert.ok(runbook_url.endsWith(`/troubleshooting.html#${alert.toLowerCase()}`), alert);
    assert.ok(help.includes(`\n### ${alert}\n`), alert);
  }
});

/** Documents on larder's site, as alerts and the dashboard link to them. */
const LINK_REGEXP =
  /https:\/\/larder\.github\.io\/larder\/(?<page>[\w-]+)\.html(?:#(?<section>[^"]*))?/g;

for (const path of ["grafana/larder.json", "prometheus/alerts.yml", "prometheus/alerts_test.yml"]) {
  Deno.test(`docs/${path}: each link leads to a heading of a document in this repository`, () => {
    const links = [...Deno.readTextFileSync(DOCS + path).matchAll(LINK_REGEXP)];
    assert.ok(links.length > 10, "the links are found");
    for (const { groups: { page = "", section } = {} } of links) {
      const headings = Deno.readTextFileSync(`${DOCS}${page}.md`).matchAll(/^#+ (.+)$/gm);
      const slugs = [...headings].map(([, heading = ""]) => slugOf(heading));
      if (section !== undefined) assert.ok(slugs.includes(section), `${page}.md#${section}`);
    }
  });
}

interface Alert {
  readonly alert: string;
  readonly annotations: Readonly<Record<string, string>>;
}

for (const entry of ROWS) {
  Deno.test(`instrument ${fullName(entry)}: its row is well formed`, () => {
    const [name, { help }] = entry;
    assert.match(name, /^[a-z]+(_[a-z]+)*$/);
    assert.match(help, /^[A-Z].{0,98}[^.]$/);
    if (name in COUNTERS) assert.match(name, /_total$/);
  });
}

Deno.test("labels of requests: values that clients cannot make up", () => {
  assert.ok(METHODS.includes("OTHER") && OUTCOMES.length === 3);
});
