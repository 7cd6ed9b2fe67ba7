import assert from "node:assert/strict";
import { DASHBOARD, PANELS } from "../../support/dashboard.ts";

const ALERTS = Deno.readTextFileSync(
  new URL("../../../docs/prometheus/alerts.yml", import.meta.url),
);

Deno.test("dashboard: each panel explains itself, and links to an alert that exists", () => {
  assert.ok(PANELS.length > 20);
  const linked = PANELS.flatMap(({ links = [] }) => links).map(({ url }) => url);
  assert.ok(linked.length > 0);
  for (const { title, description = "" } of PANELS) {
    assert.match(description, /^[A-Za-z0-9].{20,}\.$/, title);
  }
  for (const url of linked) assert.ok(ALERTS.includes(`"${url}"`), url);
});

Deno.test("dashboard: the panel of an option names it while it has no data", () => {
  const named = PANELS.flatMap(({ description = "", fieldConfig }) => {
    const option = /^With (--[\w-]+) only/.exec(description)?.[1];
    const noValue = fieldConfig?.defaults.noValue;
    if (option === undefined && noValue === undefined) return [];
    assert.match(noValue ?? "", new RegExp(`${option}$`));
    return [option];
  });
  assert.equal(named.length, 2);
});

Deno.test("dashboard: panels have places and ids of their own", () => {
  const { panels } = DASHBOARD;
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
  const targets = PANELS.flatMap(({ targets = [] }) => targets);
  for (const { expr } of [...targets, ...DASHBOARD.annotations.list]) {
    const selectors = expr.match(/\{[^{}]*\}/g) ?? [];
    assert.ok(selectors.length > 0, expr);
    for (const one of selectors) {
      assert.ok(one.startsWith('{job=~"$job",instance=~"$instance"'), expr);
    }
  }
});
