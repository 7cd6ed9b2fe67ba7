import type { HistoryStats, Stats } from "../stats/stats.ts";
import { type Chart, chart, type ChartAxis, isTelling } from "./chart.ts";
import { counted, formatBytes, formatDay } from "../../base/format_units.ts";
import { formatNumber, formatPercent, timeOfDay } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";

type Figures = NonNullable<HistoryStats["slots"][number]["figures"]>;

/** The ranges by their common names, and the labels below their charts. */
const RANGES = {
  hour: { name: "Hour", labels: ["60 min ago", "30 min", "now"], phrase: "in the last hour" },
  day: { name: "Day", labels: ["24 h ago", "12 h", "now"], phrase: "in the last day" },
  week: { name: "Week", labels: ["7 d ago", "3.5 d", "now"], phrase: "in the last week" },
  month: { name: "Month", labels: ["31 d ago", "15 d", "now"], phrase: "in the last month" },
} as const;

/** Links to the other ranges. They work without a script, too. */
export function rangesPart(range: HistoryStats["range"]): Part {
  return Object.entries(RANGES).map(([id, { name }]) =>
    markup`<a id="range-${id}" href="?range=${id}#history"${
      id === range && markup` aria-current="true"`
    }>${name}</a>`
  );
}

/** These are always in sight; the others are in the fold with the table. */
const CHARTS_IN_SIGHT = 3;

/** Charts of the past where they tell something, and all values as a table. */
export function historyPart({ history, downloads, lifetime, at }: Stats): Html {
  const { range, slots } = history;
  const names = slots.map((slot) => slotName(slot.at, range));
  const charts = chartsOf(history, downloads.count);
  const telling = charts.filter(isTelling);
  const { phrase } = RANGES[range];
  if (telling.length === 0 && slots.every(({ figures }) => figures === null || isQuiet(figures))) {
    const text = lifetime.requests === 0
      ? "Nothing yet: the charts begin with the first request."
      : `Nothing was requested ${phrase}.`;
    return markup`<p class="none">${text}</p>`;
  }
  const axis: ChartAxis = { slots: slots.length, labels: RANGES[range].labels };
  const drawn = (some: readonly Chart[]) =>
    some.length > 0 &&
    markup`<div class="charts" data-slots="${slots.length}">${
      some.map((one) => chart(one, axis, columnOf(charts, one)))
    }</div>`;
  const others = telling.slice(CHARTS_IN_SIGHT);
  return markup`${drawn(telling.slice(0, CHARTS_IN_SIGHT))}${
    stillPart(charts.filter((one) => !telling.includes(one)), phrase)
  }<details id="values" class="values">
<summary id="values-shown">${
    others.length === 0 ? "All values" : `${counted(others.length, "more chart")} and all values`
  }</summary>${drawn(others)}
<div id="values-table" class="scroll" tabindex="0" role="region"
 aria-label="Values of the charts"><table>
<caption>Each row is ${stepName(history)}, up to ${timeOfDay(at, at)}</caption>
<thead><tr><th scope="col">From (UTC)</th>${
    charts.flatMap(({ series }) => series.map(({ name }) => markup`<th scope="col">${name}</th>`))
  }</tr></thead><tbody>${rows(history, charts, names)}</tbody></table></div></details>`;
}

/** The first column of a chart in the table. */
function columnOf(charts: readonly Chart[], one: Chart): number {
  const before = charts.slice(0, charts.indexOf(one));
  return before.reduce((column, { series }) => column + series.length, 1);
}

/** The figures of charts that would tell nothing more. */
function stillPart(charts: readonly Chart[], phrase: string): Part {
  return charts.length > 0 &&
    markup`<p class="quiet">Too few changes ${phrase} for a chart: ${
      charts.flatMap(({ title, headline, figures = { [title.toLowerCase()]: headline } }) =>
        Object.entries(figures)
      ).map(([name, figure], index) => markup`${index > 0 && ", "}${name} <b>${figure}</b>`)
    }.</p>`;
}

/** The newest row first; it leaves out those without a larder. */
function rows({ slots }: HistoryStats, charts: readonly Chart[], names: readonly string[]) {
  return slots.map(({ figures }, index) =>
    figures !== null &&
    markup`<tr data-slot="${index}"><th scope="row">${names[index]}</th>${
      charts.flatMap(({ series, format }) =>
        series.map(({ values }) => {
          const value = values[index] ?? null;
          return markup`<td>${value === null ? "–" : format(value)}</td>`;
        })
      )
    }</tr>`
  ).reverse();
}

/** Values and sums of the charts of one range. */
interface Sums {
  readonly phrase: string;
  /** A value for each slot; `null` without a larder. */
  readonly each: (read: (figures: Figures) => number | null) => readonly (number | null)[];
  readonly total: (read: (figures: Figures) => number) => number;
}

function sumsOf({ range, slots }: HistoryStats): Sums {
  return {
    phrase: RANGES[range].phrase,
    each: (read) => slots.map(({ figures }) => figures === null ? null : read(figures)),
    total: (read) =>
      slots.reduce((sum, { figures }) => sum + (figures === null ? 0 : read(figures)), 0),
  };
}

function chartsOf(history: HistoryStats, inFlightNow: number): readonly Chart[] {
  return [...trafficCharts(sumsOf(history)), ...stateCharts(history, inFlightNow)];
}

function trafficCharts({ phrase, each, total }: Sums): readonly Chart[] {
  const served = formatBytes(total((figures) => figures.served_bytes));
  const fetched = formatBytes(total((figures) => figures.fetched_bytes));
  return [
    {
      title: "Served and fetched",
      headline: served,
      detail: `served, ${fetched} fetched ${phrase}`,
      figures: { served, fetched },
      series: [
        { name: "served", shape: "bars", values: each((f) => f.served_bytes) },
        { name: "fetched", shape: "line", values: each((f) => f.fetched_bytes) },
      ],
      format: formatBytes,
      scale: "bytes",
      isWide: true,
    },
    {
      title: "Hit ratio",
      headline: formatPercent(ratio(total(hits), total(lookups))),
      detail: `of ${counted(total(lookups), "request")}`,
      series: [{
        name: "hit ratio",
        shape: "area",
        values: each((f) => ratio(hits(f), lookups(f))),
      }],
      format: formatPercent,
      scale: "share",
    },
    {
      title: "Saved",
      headline: formatBytes(total((f) => f.saved_bytes)),
      detail: "that no upstream had to send",
      series: [{ name: "saved", shape: "bars", values: each((f) => f.saved_bytes) }],
      format: formatBytes,
      scale: "bytes",
    },
  ];
}

function stateCharts(history: HistoryStats, inFlightNow: number): readonly Chart[] {
  const { each, total } = sumsOf(history);
  const latest = history.slots.findLast(({ figures }) => figures !== null)?.figures;
  const inFlight = (figures: Figures) => figures.in_flight_ms / history.step_seconds / 1_000;
  return [
    {
      title: "Requests",
      headline: formatNumber(total(requests)),
      detail: "for narinfos and NARs",
      series: [{ name: "requests", shape: "bars", values: each(requests) }],
      format: (value) => formatNumber(Math.round(value * 10) / 10),
      scale: "count",
    },
    {
      title: "Downloads in flight",
      headline: formatNumber(inFlightNow),
      detail: "now; below, their mean",
      series: [{ name: "in flight", shape: "area", values: each(inFlight) }],
      format: formatMean,
      scale: "count",
    },
    {
      title: "Stored",
      headline: latest ? formatBytes(latest.stored_bytes) : "–",
      detail: "of NAR files",
      series: [{ name: "stored", shape: "area", values: each((f) => f.stored_bytes) }],
      format: formatBytes,
      scale: "bytes",
    },
    {
      title: "Evicted",
      headline: formatBytes(total((f) => f.evicted_bytes)),
      detail: counted(total((f) => f.evicted_entries), "entry", "entries"),
      series: [{ name: "evicted", shape: "bars", values: each((f) => f.evicted_bytes) }],
      format: formatBytes,
      scale: "bytes",
    },
  ];
}

const hits = (figures: Figures) => figures.narinfo_hits + figures.nar_hits;
const lookups = (figures: Figures) => hits(figures) + figures.narinfo_misses + figures.nar_misses;
const requests = (figures: Figures) => lookups(figures) + figures.absent;

/** True without requests, and without served and evicted bytes. */
function isQuiet(figures: Figures): boolean {
  return requests(figures) + figures.served_bytes + figures.evicted_bytes === 0;
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}

function formatMean(value: number): string {
  return value === 0 || value >= 10 ? value.toFixed(0) : value.toFixed(value < 1 ? 2 : 1);
}

function slotName(iso: string, range: HistoryStats["range"]): string {
  const time = iso.slice(11, 16);
  return range === "hour" || range === "day" ? time : `${formatDay(Date.parse(iso))} ${time}`;
}

function stepName({ step_seconds }: HistoryStats): string {
  return step_seconds < 3_600
    ? counted(step_seconds / 60, "minute")
    : counted(step_seconds / 3_600, "hour");
}
