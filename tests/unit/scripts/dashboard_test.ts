import assert from "node:assert/strict";
import { dashboardJson, SECTIONS } from "../../../scripts/grafana/dashboard.ts";

const ALERTS = Deno.readTextFileSync(
  new URL("../../../docs/prometheus/alerts.yml", import.meta.url).pathname,
);

interface Placed {
  readonly id: number;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
}

Deno.test("dashboard: each panel explains itself, and links to an alert that exists", () => {
  for (const { title, description, alert } of SECTIONS.flatMap(({ panels }) => panels)) {
    assert.match(description, /^[A-Za-z0-9].{20,}\.$/, title);
    if (alert !== undefined) assert.ok(ALERTS.includes(`alert: ${alert}\n`), alert);
  }
});

Deno.test("dashboard: the panel of an option names it while it has no data", () => {
  const { panels } = JSON.parse(dashboardJson());
  for (const { description = "", fieldConfig } of panels) {
    const option = /^With (--[\w-]+) only/.exec(description)?.[1];
    if (option !== undefined) assert.match(fieldConfig.defaults.noValue, new RegExp(`${option}$`));
  }
  assert.equal(JSON.stringify(panels).split('"noValue"').length - 1, 2);
});

Deno.test("dashboard: panels have places and ids of their own", () => {
  const panels: readonly Placed[] = JSON.parse(dashboardJson()).panels;
  const taken = new Set<string>();
  for (const { gridPos: { x, y, w, h } } of panels) {
    assert.ok(x + w <= 24);
    for (let column = x; column < x + w; column++) {
      for (let row = y; row < y + h; row++) {
        assert.ok(!taken.has(`${column} ${row}`), `${column} ${row}`);
        taken.add(`${column} ${row}`);
      }
    }
  }
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
});

Deno.test("dashboard: every expression follows the chosen jobs and instances", () => {
  const { panels, annotations } = JSON.parse(dashboardJson());
  const targets = panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) => targets);
  for (const { expr } of [...targets, ...annotations.list]) {
    const selectors = expr.match(/\{[^{}]*\}/g) ?? [];
    assert.ok(selectors.length > 0, expr);
    for (const one of selectors) {
      assert.ok(one.startsWith('{job=~"$job",instance=~"$instance"'), expr);
    }
  }
});
