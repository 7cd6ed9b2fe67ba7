import assert from "node:assert/strict";
import { recordingSvg } from "../../../scripts/recording_svg.ts";

const LINES = ["two clients & <one> upstream", "", "  HIT  nar     editor-9.1"];

Deno.test("recording: it has the command and each line, with marks in their colours", () => {
  const svg = recordingSvg("larder demo", LINES);
  assert.match(svg, /<tspan class="prompt">\$ <\/tspan>larder demo</);
  assert.match(svg, />two clients &amp; &lt;one> upstream<\/text>/);
  assert.match(svg, /> {2}<tspan class="hit">HIT<\/tspan> {2}nar {5}editor-9\.1</);
});

Deno.test("recording: the same lines are the same picture, and each line has its frame", () => {
  const svg = recordingSvg("larder demo", LINES);
  assert.equal(recordingSvg("larder demo", LINES), svg);
  const begins = [...svg.matchAll(/0%, ([\d.]+)% \{ opacity: 0 \}/g)].map(([, at]) => Number(at));
  assert.equal(begins.length, LINES.length);
  assert.deepEqual(begins, begins.toSorted((one, other) => one - other));
});
