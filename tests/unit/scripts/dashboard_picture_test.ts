import assert from "node:assert/strict";
import { pictureHtml } from "../../../scripts/grafana/picture.ts";

Deno.test("dashboard: the text of charts has one size, however wide they are", () => {
  const series = [{ name: "up", points: [[0, 1], [60, 2]] as const }];
  const html = pictureHtml(() => series);
  const charts = [...html.matchAll(/span (\d+)"><h3>[^<]*<\/h3><svg viewBox="0 0 (\d+) (\d+)"/g)];
  const shapes = new Map(charts.map(([, columns, width, height]) => [columns, [width, height]]));
  // The width of a panel without its frame, in pixels.
  assert.deepEqual(Object.fromEntries(shapes), { 8: ["382", "130"], 12: ["586", "130"] });
});
