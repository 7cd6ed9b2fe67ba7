import { formatBytes, formatMs } from "../../src/base/format_units.ts";
import { SECTIONS } from "./dashboard.ts";
import type { Panel, Threshold } from "./panel.ts";
import type { Series } from "./series.ts";

const COLOURS = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#b877d9", "#37872d"];
const NAMED = { green: "#73bf69", yellow: "#f2cc0c", red: "#f2495c", blue: "#8ab8ff" } as const;

const [COLUMN, HEIGHT, LEFT, BOTTOM] = [51, 130, 64, 16];

/** The gap beside a panel, and its padding. */
const FRAME = 26;

/** The dashboard with its panels as Grafana would place them, as one page of HTML. */
export function pictureHtml(seriesOf: (panel: Panel) => readonly Series[]): string {
  const sections = SECTIONS.map(({ title, panels }) => {
    const shown = panels.map((panel) => panelHtml(panel, seriesOf(panel)));
    return `<h2>${title}</h2><div class="grid">${shown.join("")}</div>`;
  });
  return `<!DOCTYPE html><meta charset="utf-8"><style>${STYLE}</style>${sections.join("")}`;
}

function panelHtml(panel: Panel, series: readonly Series[]): string {
  const body = series.length === 0
    ? `<p class="none">${panel.ifEmpty ?? "No data"}</p>`
    : panel.kind === "stat"
    ? statHtml(panel, series)
    : panel.kind === "timeseries"
    ? chartHtml(panel, series)
    : stateHtml(series);
  return `<div style="grid-column: span ${panel.columns}"><h3>${panel.title}</h3>${body}</div>`;
}

function statHtml(panel: Panel, series: readonly Series[]): string {
  const figures = series.map(({ name, points }) => {
    const value = points.at(-1)?.[1] ?? NaN;
    const isNeutral = panel.targets.some(({ legend, isNeutral }) => isNeutral && legend === name);
    const judged = colourOf(panel.thresholds ?? [["green", null]], value);
    const colour = NAMED[isNeutral ? "blue" : judged];
    const label = series.length > 1 ? `<small>${name}</small>` : "";
    return `<span style="color: ${colour}">${label}<b>${shown(value, panel.unit)}</b></span>`;
  });
  return `<p class="stat">${figures.join("")}</p>`;
}

function colourOf(thresholds: readonly Threshold[], value: number): Threshold[0] {
  return thresholds.findLast(([, from]) => from === null || value >= from)?.[0] ?? "green";
}

interface Axis {
  readonly width: number;
  readonly x: (atS: number) => number;
  readonly y: (value: number) => number;
  readonly top: number;
}

function axisOf(panel: Panel, series: readonly Series[]): Axis {
  const times = series.flatMap(({ points }) => points.map(([atS]) => atS));
  const values = series.flatMap(({ points }) => points.map(([, value]) => value))
    .filter((value) => Number.isFinite(value));
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const top = panel.max ?? (Math.max(0, ...values) * 1.1 || 1);
  // One unit is a pixel: text has the same size in every panel.
  const width = panel.columns * COLUMN - FRAME;
  return {
    top,
    width,
    x: (atS) => LEFT + (width - LEFT) * (atS - from) / Math.max(1, to - from),
    y: (value) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 6) * value / top,
  };
}

function chartHtml(panel: Panel, given: readonly Series[]): string {
  const series = panel.isStacked ? stacked(given) : given;
  const axis = axisOf(panel, series);
  const { width } = axis;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const y = axis.y(part * axis.top);
    return `<line x1="${LEFT}" x2="${width}" y1="${y}" y2="${y}" stroke="#333840"/>` +
      `<text x="${LEFT - 4}" y="${y + 3}">${shown(part * axis.top, panel.unit)}</text>`;
  });
  const limits = (panel.thresholds ?? []).flatMap(([colour, from]) => {
    if (from === null || from > axis.top) return [];
    const stroke = NAMED[colour === "green" ? "red" : colour];
    const y = axis.y(from);
    return [`<line x1="${LEFT}" x2="${width}" y1="${y}" y2="${y}" stroke="${stroke}"/>`];
  });
  // A stack's first series lies in front of the others.
  const lines = series.map((one, at) => {
    const known = one.points.filter(([, value]) => Number.isFinite(value));
    const path = known.map(([atS, value]) => `${axis.x(atS)},${axis.y(value)}`).join(" ");
    const fill = panel.isStacked ? areaUnder(path, axis, colour(at)) : "";
    return `${fill}<polyline points="${path}" stroke="${colour(at)}" fill="none"/>`;
  }).toReversed();
  return `<svg viewBox="0 0 ${width} ${HEIGHT}">${ticks.join("")}${limits.join("")}${
    lines.join("")
  }</svg>${legendHtml(given)}`;
}

function areaUnder(path: string, { y }: Axis, fill: string): string {
  const [first = "", ...rest] = path.split(" ");
  const last = rest.at(-1) ?? first;
  const corners = [last, first].map((point) => `${point.split(",")[0]},${y(0)}`).join(" ");
  return `<polygon points="${path} ${corners}" fill="${fill}"/>`;
}

function stacked(series: readonly Series[]): readonly Series[] {
  const sums = new Map<number, number>();
  return series.map(({ name, points }) => ({
    name,
    points: points.map(([atS, value]) => {
      const sum = (sums.get(atS) ?? 0) + (Number.isFinite(value) ? value : 0);
      sums.set(atS, sum);
      return [atS, sum] as const;
    }),
  }));
}

function stateHtml(series: readonly Series[]): string {
  const rows = series.map(({ name, points }) => {
    const states = points.map(([, value]) => `<i class="${value === 1 ? "up" : "down"}"></i>`);
    return `<p class="state"><span>${name}</span><span class="bar">${states.join("")}</span></p>`;
  });
  return rows.join("");
}

function legendHtml(series: readonly Series[]): string {
  const names = series.map(({ name }, at) => `<span style="color: ${colour(at)}">${name}</span>`);
  return `<p class="legend">${names.join(" ")}</p>`;
}

function colour(at: number): string {
  return COLOURS[at % COLOURS.length] ?? "";
}

function shown(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "–";
  if (unit === "percentunit") return `${Math.round(100 * value)}%`;
  if (unit === "bytes") return formatBytes(Math.round(value));
  if (unit === "Bps") return `${formatBytes(Math.round(value))}/s`;
  if (unit === "s") return formatMs(1_000 * value);
  const figure = String(Number(value.toPrecision(3)));
  return unit === "reqps" ? `${figure} req/s` : unit === "ops" ? `${figure} ops/s` : figure;
}

const STYLE = `
body { background: #111217; color: #ccccdc; font: 12px sans-serif; margin: 12px; width: 1216px }
h2 { font-size: 15px; font-weight: 500; margin: 14px 0 6px }
h3 { font-size: 12px; font-weight: 500; margin: 0 0 4px }
.grid { display: grid; grid-template-columns: repeat(24, 1fr); gap: 8px }
.grid > div { background: #181b1f; border: 1px solid #2a2d33; border-radius: 2px; padding: 8px }
svg text { fill: #8e8e9c; font: 9px sans-serif; text-anchor: end }
.legend, .stat, .state, .none { margin: 4px 0 0 }
.legend span { margin-right: 10px } .none { color: #8e8e9c; padding: 30px; text-align: center }
.stat { display: flex; gap: 18px; justify-content: center }
.stat b { font-size: 22px; white-space: nowrap }
.stat small { display: block }
.state { display: flex; gap: 10px } .state > span:first-child { width: 180px }
.bar { display: flex; flex: 1 } .bar i { flex: 1; height: 20px }
.up { background: #73bf69 } .down { background: #f2495c }
`;
