import assert from "node:assert/strict";
import { type Chart, chart, type ChartSeries, isTelling } from "../../../src/http/page/chart.ts";

/** The paths of a chart of four slots: of the line, and of the area below it. */
function drawn(shape: ChartSeries["shape"], values: ChartSeries["values"]) {
  const one: Chart = {
    ...{ title: "Hit ratio", headline: "50%", detail: "of 2 requests", scale: "share" },
    series: [{ name: "hit ratio", shape, values }],
    format: String,
  };
  const { text } = chart(one, { slots: 4, labels: [] }, 1);
  const path = (name: string) => new RegExp(`class="${name} first" d="([^"]*)"`).exec(text)?.[1];
  return { line: path("line"), below: path("below") };
}

Deno.test("page: a lone slot of a line is as wide as its slot, with its area", () => {
  assert.deepEqual(drawn("area", [null, null, null, 0.5]), {
    line: "M30 51L40 51",
    below: "M30 100L30 51L40 51L40 100Z",
  });
  assert.equal(drawn("line", [0, null, 1, null]).line, "M0 99L10 99M20 3L30 3");
});

Deno.test("page: a line goes from the middle of a slot to that of its neighbour", () => {
  assert.deepEqual(drawn("area", [null, 0, 1, null]), {
    line: "M15 99L25 3",
    below: "M15 100L15 99L25 3L25 100Z",
  });
});

/** Charts of eight slots, and whether they tell more than their headline. */
const TOLD: readonly (readonly [
  words: string,
  shape: ChartSeries["shape"],
  scale: Chart["scale"],
  values: ChartSeries["values"],
  tells: boolean,
])[] = [
  ["nothing at all", "bars", "bytes", [0, 0, 0, 0, 0, 0, 0, 0], false],
  ["no larder", "area", "share", Array(8).fill(null), false],
  ["one burst", "bars", "bytes", [0, 0, 0, 9e6, 8e6, 0, 0, 0], false],
  ["a busy hour", "bars", "bytes", [0, 0, 9e6, 1e3, 8e6, 0, 0, 0], true],
  ["the same in every slot", "bars", "count", [5, 5, 5, 5, 5, 5, 5, 5], false],
  ["a flat line", "area", "bytes", [9e9, 9e9, 9e9, 9.1e9, 9.2e9, 9.1e9, 9e9, 9e9], false],
  ["a line that rises", "area", "bytes", [1e9, 1e9, 2e9, 3e9, 4e9, 9e9, 9e9, 9e9], true],
  ["all hits", "area", "share", [1, null, 1, 1, 1, 1, 1, 1], false],
  ["two misses", "area", "share", [1, 0.5, 1, 1, 0, 1, 1, 1], false],
  ["a day of an update", "area", "share", [1, 0.9, 0.4, 0.5, 0.8, 1, 1, 1], true],
  ["hardly a download", "area", "count", [0, 0.01, 0.02, 0.03, 0.02, 0.04, 0, 0], false],
];

for (const [words, shape, scale, values, tells] of TOLD) {
  Deno.test(`page: a chart of ${words} ${tells ? "is drawn" : "is a figure alone"}`, () => {
    const texts = { title: "Any", headline: "1", detail: "of it", format: String };
    assert.equal(isTelling({ ...texts, scale, series: [{ name: "a", shape, values }] }), tells);
  });
}
