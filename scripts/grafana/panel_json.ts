import type { Panel, Target, Threshold } from "./panel.ts";

/** URL of larder's published documents. */
export const SITE = "https://larder.github.io/larder/";

export const DATA_SOURCE = { type: "prometheus", uid: "${datasource}" } as const;

export interface GridPlace {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** A panel in Grafana's form. */
export function panelJson(panel: Panel, id: number, gridPos: GridPlace): object {
  const { kind: type, title, description, alert, targets } = panel;
  return {
    ...{ id, type, title, description, datasource: DATA_SOURCE, gridPos },
    links: alert === undefined ? [] : [linkTo(alert)],
    fieldConfig: {
      defaults: DEFAULTS[type](panel),
      overrides: targets.filter(({ isNeutral }) => isNeutral).map(neutral),
    },
    options: OPTIONS[type],
    targets: targets.map(targetJson),
  };
}

function linkTo(alert: string) {
  const url = `${SITE}troubleshooting.html#${alert.toLowerCase()}`;
  return { title: `What to do: ${alert}`, url, targetBlank: true };
}

function neutral({ legend }: Target) {
  return {
    matcher: { id: "byName", options: legend },
    properties: [{ id: "color", value: { mode: "fixed", fixedColor: "blue" } }],
  };
}

function targetJson({ expr, legend, isInstant = false }: Target, index: number) {
  return {
    refId: String.fromCharCode("A".charCodeAt(0) + index),
    ...{ datasource: DATA_SOURCE, expr, legendFormat: legend },
    ...{ instant: isInstant, range: !isInstant },
  };
}

const UP_OR_DOWN = {
  type: "value",
  options: {
    0: { text: "down", color: "red", index: 0 },
    1: { text: "up", color: "green", index: 1 },
  },
};

const DEFAULTS: Readonly<Record<Panel["kind"], (panel: Panel) => object>> = {
  "stat": (panel) => ({ ...scale(panel), color: { mode: "thresholds" } }),
  "timeseries": (panel) => ({
    ...scale(panel),
    color: { mode: "palette-classic" },
    custom: {
      ...{ drawStyle: "line", lineWidth: 1, showPoints: "never", spanNulls: false },
      fillOpacity: panel.isStacked ? 40 : 10,
      stacking: { mode: panel.isStacked ? "normal" : "none", group: "A" },
      thresholdsStyle: { mode: panel.thresholds === undefined ? "off" : "line" },
    },
  }),
  "state-timeline": (panel) => ({
    ...scale(panel),
    color: { mode: "thresholds" },
    custom: { lineWidth: 0, fillOpacity: 80 },
    mappings: [UP_OR_DOWN],
  }),
};

function scale({ unit, max, ifEmpty, thresholds = [["green", null]] }: Panel) {
  const steps = thresholds.map(([color, value]: Threshold) => ({ color, value }));
  return {
    ...{ unit, min: 0, ...max === undefined ? {} : { max } },
    ...ifEmpty === undefined ? {} : { noValue: ifEmpty },
    thresholds: { mode: "absolute", steps },
  };
}

const LEGEND = { displayMode: "list", placement: "bottom", showLegend: true, calcs: [] } as const;

const OPTIONS: Readonly<Record<Panel["kind"], object>> = {
  "stat": {
    reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
    ...{ orientation: "auto", textMode: "auto", justifyMode: "auto" },
    ...{ colorMode: "value", graphMode: "none" },
  },
  "timeseries": { legend: LEGEND, tooltip: { mode: "multi", sort: "desc" } },
  "state-timeline": {
    ...{ mergeValues: true, showValue: "auto", alignValue: "left", rowHeight: 0.9 },
    legend: LEGEND,
    tooltip: { mode: "single", sort: "none" },
  },
};
