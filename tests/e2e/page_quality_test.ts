import assert from "node:assert/strict";
import axe from "axe-core";
import { pageTest } from "../support/shown_page.ts";

const BYTES_MAX = 100_000;

/** It is some 60 ms on an idle machine. Tests share theirs with others. */
const FIRST_PAINT_MAX_MS = 300;

const PAINTED = `new Promise((resolve) => {
  new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntriesByName("first-contentful-paint")) resolve(startTime);
  }).observe({ type: "paint", buffered: true });
})`;

pageTest("page: axe finds nothing, in the light, in the dark and on a phone", async ({ tab }) => {
  await tab.read(`${axe.source}; undefined`);
  for (const [scheme, width] of [["light", 1_280], ["dark", 1_280], ["light", 360]] as const) {
    await tab.prefer(scheme);
    await tab.resize(width, 740);
    for (const isOpen of [false, true]) {
      await tab.read(`document.querySelectorAll("details").forEach((o) => o.open = ${isOpen})`);
      const found = await tab.read<string[]>(`axe.run().then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
      assert.deepEqual(found, [], `${scheme}, ${width} px`);
    }
  }
});

pageTest("page: it is small, and painted at once", async ({ tab, url }) => {
  const paints: number[] = [];
  for (const range of ["hour", "day", "week", "month"]) {
    const page = await fetch(`${url}/?range=${range}`, { headers: { accept: "text/html" } });
    const { length } = await page.bytes();
    assert.ok(length < BYTES_MAX, `${range}: ${length} bytes`);
    await tab.open(`${url}/?range=${range}`);
    paints.push(await tab.read<number>(PAINTED));
  }
  // The fastest of them: other work of the machine is not the page's.
  assert.ok(Math.min(...paints) < FIRST_PAINT_MAX_MS, `${paints} ms`);
});
