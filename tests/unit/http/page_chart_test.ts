import assert from "node:assert/strict";
import { type Chart, chart, type ChartSeries } from "../../../src/http/page/chart.ts";

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
