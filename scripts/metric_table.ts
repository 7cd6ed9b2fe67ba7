import { COUNTERS } from "../src/telemetry/instruments/counters.ts";
import { GAUGES } from "../src/telemetry/instruments/gauges.ts";
import { HISTOGRAMS } from "../src/telemetry/instruments/histograms.ts";
import type { Group, Instrument } from "../src/telemetry/instruments/instrument.ts";

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
