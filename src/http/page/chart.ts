import { type Html, markup } from "./markup.ts";

/** One line or row of bars. `null`: nothing is known of that slot. */
export interface ChartSeries {
  readonly name: string;
  readonly shape: "bars" | "line" | "area";
  readonly values: readonly (number | null)[];
}

export interface Chart {
  readonly title: string;
  /** The figure that stands for the whole range. */
  readonly headline: string;
  /** Meaning of the headline, in a few words. */
  readonly detail: string;
  /** Each of its figures under its own name, where there are several. Default: the headline. */
  readonly figures?: Readonly<Record<string, string>>;
  /** The first has the accent colour, the second is grey. */
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  /** Steps of the axis: `bytes` are powers of 1024, `share` ends at 1. */
  readonly scale: "bytes" | "count" | "share";
  readonly isWide?: boolean;
}

/** The axis of all charts of a range. */
export interface ChartAxis {
  readonly slots: number;
  /** Below the chart, from left to right. */
  readonly labels: readonly string[];
}

const SLOT_WIDTH = 10;
const HEIGHT = 100;

/** Heights that an eye tells apart. */
const LEVELS = 20;

/** Fewer slots than this draw no shape: the headline says as much. */
const TELLING_SLOTS_MIN = 3;

/**
 * True if a chart says more than its headline. In one of its series, at least three slots differ
 * visibly from the most frequent height. A flat line and a lone bar say nothing more.
 */
export function isTelling(one: Chart): boolean {
  const top = niceTop(one);
  return one.series.some(({ shape, values }) => {
    // A small bar is visible, too.
    const rounded = shape === "bars" ? Math.ceil : Math.round;
    const known = values.filter((value) => value !== null);
    const heights = Map.groupBy(known, (value) => rounded(LEVELS * Math.min(1, value / top)));
    const usual = Math.max(0, ...[...heights.values()].map(({ length }) => length));
    return known.length - usual >= TELLING_SLOTS_MIN;
  });
}

/**
 * A chart as inline SVG: an axis with numbers, and the place of the column below the pointer. The
 * script reads that column's values in the table below the charts, from this table column on.
 */
export function chart(one: Chart, axis: ChartAxis, tableColumn: number): Html {
  const width = axis.slots * SLOT_WIDTH;
  const top = niceTop(one);
  const shapes = one.series.map((series, index) =>
    shape(series, top, index === 0 ? "first" : "second")
  );
  const legend = one.series.length > 1 &&
    markup`<span class="legend">${
      one.series.map(({ name }, index) =>
        markup`<span class="${index === 0 ? "first" : "second"}">${name}</span>`
      )
    }</span>`;
  return markup`<figure class="chart${
    one.isWide ? " two" : ""
  }" data-column="${tableColumn}" data-series="${one.series.length}">
<figcaption><span class="label">${one.title}</span>${legend}<b>${one.headline}</b>
<span class="quiet" data-rest="${one.detail}">${one.detail}</span></figcaption>
<div class="plot"><div class="ys" aria-hidden="true">${
    [top, top / 2, 0].map((value) => markup`<span>${one.format(value).replace(".0 ", " ")}</span>`)
  }</div>
<svg viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${
    summary(one)
  }"><path class="grid" d="M0 .5H${width}M0 50H${width}M0 99.5H${width}"/>${shapes}<rect
 class="cursor" width="${SLOT_WIDTH}" height="${HEIGHT}" x="-${SLOT_WIDTH}"/></svg>
<div class="xs" aria-hidden="true">${
    axis.labels.map((label) => markup`<span>${label}</span>`)
  }</div></div></figure>`;
}

function shape(
  { shape, values }: ChartSeries,
  top: number,
  tone: "first" | "second",
): Html {
  const y = (value: number) => round(HEIGHT - 1 - (HEIGHT - 4) * Math.min(1, value / top));
  if (shape === "bars") {
    const bars = values.map((value, index) => {
      if (value === null || value <= 0) return "";
      const x = index * SLOT_WIDTH;
      return `M${x + 1.5} 99.5V${Math.min(98, y(value))}H${x + 8.5}V99.5`;
    });
    return markup`<path class="bars ${tone}" d="${bars.join("")}"/>`;
  }
  const runs = runsOf(values).map((run) =>
    placesOf(run).map(([x, value]) => [x, y(value)] as const)
  );
  const line = runs.map((run) => `M${joined(run)}`).join("");
  const below = shape === "area" &&
    runs.map((run) => {
      const [from, to] = [run[0]?.[0], run.at(-1)?.[0]];
      return `M${from} 100L${joined(run)}L${to} 100Z`;
    }).join("");
  return markup`${
    below && markup`<path class="below ${tone}" d="${below}"/>`
  }<path class="line ${tone}" d="${line}"/>`;
}

/** The middles of its slots. A lone one is as wide as its slot: nobody sees a dot. */
function placesOf(run: readonly (readonly [number, number])[]) {
  const [[index, value] = [0, 0], ...others] = run;
  const at = index * SLOT_WIDTH;
  if (others.length === 0) return [[at, value], [at + SLOT_WIDTH, value]] as const;
  return run.map(([index, value]) => [index * SLOT_WIDTH + SLOT_WIDTH / 2, value] as const);
}

function joined(points: readonly (readonly [number, number])[]): string {
  return points.map((point) => point.join(" ")).join("L");
}

/** Neighbours with values, as places and values. */
function runsOf(values: readonly (number | null)[]): readonly (readonly [number, number])[][] {
  const runs: [number, number][][] = [];
  let run: [number, number][] | undefined;
  for (const [index, value] of values.entries()) {
    if (value === null) run = undefined;
    else if (run === undefined) runs.push(run = [[index, value]]);
    else run.push([index, value]);
  }
  return runs;
}

/** The chart in one sentence, for those who do not see it. */
function summary({ title, headline, detail, series, format }: Chart): string {
  const highs = series.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    return known.length === 0
      ? `${name}: nothing is known`
      : `${name}: between ${format(Math.min(...known))} and ${format(Math.max(...known))}`;
  });
  return `${title}: ${headline}, ${detail}. ${highs.join("; ")}. The table below has all values.`;
}

/** The number at the top of the axis: round, and at least the highest value. */
function niceTop({ series, scale }: Chart): number {
  if (scale === "share") return 1;
  const highest = Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  if (scale === "count") return niceAtLeast(Math.max(2, highest));
  let unit = 1;
  while (highest / unit > 1_000) unit *= 1024;
  return highest === 0 ? 1024 ** 2 : niceAtLeast(highest / unit) * unit;
}

function niceAtLeast(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((nice) => nice >= value) ?? value;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
