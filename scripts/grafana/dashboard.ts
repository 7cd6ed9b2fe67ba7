import { CLIENTS } from "./clients.ts";
import { OVERVIEW } from "./overview.ts";
import type { Panel, Section } from "./panel.ts";
import { DATA_SOURCE, panelJson, SITE } from "./panel_json.ts";
import { PROCESS } from "./process.ts";
import { OF } from "./selector.ts";
import { SPACE } from "./space.ts";
import { UPSTREAMS } from "./upstreams.ts";

export const SECTIONS: readonly Section[] = [OVERVIEW, CLIENTS, UPSTREAMS, SPACE, PROCESS];

const COLUMNS = 24;
const HEADING_ROWS = 1;
const HEIGHTS = { "stat": 4, "timeseries": 8, "state-timeline": 6 } as const;

/** The dashboard as Grafana imports it. */
export function dashboardJson(): string {
  const dashboard = {
    uid: "larder",
    title: "larder",
    description: "A pull-through binary cache for Nix: what it saves, and what is wrong.",
    tags: ["larder", "nix"],
    schemaVersion: 39,
    version: 2,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    links: LINKS,
    annotations: { list: [RESTARTS] },
    templating: { list: VARIABLES },
    panels: placed(SECTIONS),
  };
  return `${JSON.stringify(dashboard, null, 1)}\n`;
}

const LINKS = [
  link("Monitoring", `${SITE}observability.html`),
  link("Troubleshooting", `${SITE}troubleshooting.html`),
];

function link(title: string, url: string) {
  return { title, url, type: "link", icon: "doc", targetBlank: true, tags: [], keepTime: false };
}

/** A mark at each start. The metric's value is the time. */
const RESTARTS = {
  name: "Restarts",
  datasource: DATA_SOURCE,
  enable: true,
  iconColor: "orange",
  expr: `process_start_time_seconds{${OF}} * 1000`,
  step: "60s",
  titleFormat: "larder started",
  textFormat: "{{instance}}",
  useValueForTime: "on",
};

const VARIABLES = [
  { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
  variable("job", "Job", "label_values(larder_build_info, job)"),
  variable("instance", "Instance", 'label_values(larder_build_info{job=~"$job"}, instance)'),
];

function variable(name: string, label: string, query: string) {
  return {
    ...{ name, label, type: "query", datasource: DATA_SOURCE, query: { query, refId: name } },
    ...{ refresh: 2, sort: 1, multi: true, includeAll: true },
    current: { text: "All", value: "$__all" },
  };
}

/** The panels from left to right, each section below its heading. */
function placed(sections: readonly Section[]): readonly object[] {
  let [id, y] = [0, 0];
  return sections.flatMap(({ title, panels }) => {
    const heading = {
      ...{ id: ++id, type: "row", title, collapsed: false, panels: [] },
      gridPos: { x: 0, y, w: COLUMNS, h: HEADING_ROWS },
    };
    y += HEADING_ROWS;
    const rows = rowsOf(panels);
    const shown = rows.flatMap((row) => {
      const h = Math.max(...row.map(({ kind }) => HEIGHTS[kind]));
      let x = 0;
      const line = row.map((panel) => {
        const json = panelJson(panel, ++id, { x, y, w: panel.columns, h });
        x += panel.columns;
        return json;
      });
      y += h;
      return line;
    });
    return [heading, ...shown];
  });
}

function rowsOf(panels: readonly Panel[]): readonly (readonly Panel[])[] {
  const rows: Panel[][] = [[]];
  let width = 0;
  for (const panel of panels) {
    if (width + panel.columns > COLUMNS) [width] = [0, rows.push([])];
    width += panel.columns;
    rows.at(-1)?.push(panel);
  }
  return rows;
}
