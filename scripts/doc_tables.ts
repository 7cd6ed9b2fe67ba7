import type { ForeignTable } from "../src/config/sources/foreign.ts";
import { flagName, type Names, type OptionTable, variableFor } from "../src/config/kinds/option.ts";
import { spellingsOf } from "../src/config/sources/found.ts";
import { COUNTERS } from "../src/telemetry/instruments/counters.ts";
import { GAUGES } from "../src/telemetry/instruments/gauges.ts";
import { HISTOGRAMS } from "../src/telemetry/instruments/histograms.ts";
import type { Group, Instrument } from "../src/telemetry/instruments/instrument.ts";

/** The names of ncps that differ from larder's, as a Markdown table. */
export function aliasTable(options: OptionTable): string {
  const rows = Object.entries(options).filter(([, { also }]) => also !== undefined)
    .map(([key, option]) => [
      (option.also ?? []).flatMap(namesIn).map(code).join(", "),
      [flagName(key), variableFor(key, option), ...option.notInFile ? [] : [key]].map(code)
        .join(", "),
    ]);
  return markdown([["ncps", "larder"], ["---", "---"], ...rows]);
}

/** The settings without a counterpart, grouped by their answer, as a Markdown table. */
export function foreignTable(foreign: ForeignTable): string {
  const groups = Map.groupBy(
    spellingsOf(foreign).filter(({ isOwn }) => isOwn),
    ({ key }) => `${foreign[key]?.isIgnored ? "warning" : "error"}\n${foreign[key]?.help}`,
  );
  const rows = [...groups].map(([group, spellings]) => {
    const [outcome = "", help = ""] = group.split("\n");
    return [spellings.map(({ names }) => code(names.flag ?? "")).join(", "), outcome, help];
  });
  return markdown([["Setting of ncps", "With a value", "Why, and what to do"], [
    "---",
    "---",
    "---",
  ], ...rows]);
}

function namesIn({ flag, variable, key }: Names): readonly string[] {
  return [flag, variable, key].flatMap((name) => name === undefined ? [] : [name]);
}

function code(text: string): string {
  return `\`${text}\``;
}

function markdown(rows: readonly (readonly string[])[]): string {
  return rows.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

/** The option that exports each group of instruments. */
const OPTIONS: Readonly<Record<Group, string>> = {
  analytics: "only with `--analytics-reporting-enabled`",
  redis: "only with `--cache-redis-addrs`",
  otel: "only with `--otel-enabled`",
};

type Rows = Readonly<Record<string, Instrument & { readonly type?: string }>>;

/** Every metric as a table in Markdown. */
export function metricTable(): string {
  const lines = [
    ...["| Name | Type | Labels | |", "| --- | --- | --- | --- |"],
    ...[...rowsOf(COUNTERS, "counter"), ...rowsOf(GAUGES, "gauge")],
    ...rowsOf(HISTOGRAMS, "histogram"),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function rowsOf(table: Rows, usualType: string): readonly string[] {
  return Object.entries(table).map(([name, { help, labels, plain, when, type = usualType }]) => {
    const shownLabels = Object.keys(labels).map((label) => `\`${label}\``).join(", ");
    const condition = when === undefined ? "" : ` (${OPTIONS[when]})`;
    const fullName = `\`${plain ? name : `larder_${name}`}\``;
    return `| ${[fullName, type, shownLabels, help + condition].join(" | ")} |`;
  });
}
