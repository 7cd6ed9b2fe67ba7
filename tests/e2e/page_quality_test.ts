import assert from "node:assert/strict";
import axe from "axe-core";
import { openBrowser } from "../support/browser.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { openFullPage } from "../support/full_page.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { LAID_OUT, pageTest } from "../support/shown_page.ts";
import { pastMonth } from "../support/past_month.ts";
import { TestCache } from "../support/test_cache.ts";

const BYTES_MAX = 100_000;

const ELEMENTS_MAX = 2_500;

/** Of a phone. On it, the page takes three screens at most. */
const [PHONE_WIDTH, PHONE_HEIGHT] = [390, 844];
const SCREENS_MAX = 3;

const RANGES = ["hour", "day", "week", "month"];

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

pageTest("page: figures keep a distance on a phone, in a wide font, too", async ({ tab }) => {
  for (const [width, font] of [[PHONE_WIDTH, "DejaVu Sans"], [360, "DejaVu Sans"], [320, ""]]) {
    await tab.resize(Number(width), 740);
    const gaps = await tab.read<number[]>(`(() => {
      document.body.style.fontFamily = ${JSON.stringify(font)};
      const figures = [...document.querySelectorAll(".figures b")];
      ["133.3 MiB", "133.3 MiB", "261", "100%", "99.9%"]
        .forEach((text, at) => figures[at].textContent = text);
      const boxes = figures.map((figure) => {
        const range = document.createRange();
        range.selectNodeContents(figure);
        return range.getBoundingClientRect();
      });
      return boxes.slice(1).map((box, at) => [boxes[at], box])
        .filter(([former, box]) => Math.abs(former.top - box.top) < 4)
        .map(([former, box]) => box.left - former.right);
    })()`);
    assert.ok(gaps.length > 0);
    assert.ok(gaps.every((gap) => gap >= 8), `${width} px, ${font}: ${gaps}`);
  }
});

testUnless(
  programsMissing("chromium"),
  "page: on a phone it takes three screens at most: new, idle after a month, and with all",
  async () => {
    await using browser = await openBrowser();
    await using tab = await browser.tab();
    await tab.resize(PHONE_WIDTH, PHONE_HEIGHT);
    const screens = async (url: string) => {
      await tab.open(url);
      await tab.read(LAID_OUT);
      return await tab.read<number>("document.documentElement.scrollHeight") / PHONE_HEIGHT;
    };
    const heights: Record<string, number> = {};
    await using upstream = await fakeUpstream({});
    await using unused = await TestCache.open({ upstreams: [upstream] });
    await using unusedServer = unused.listen();
    heights["new"] = await screens(unusedServer.url);
    await using idle = await TestCache.open({ upstreams: [upstream] });
    await idle.metadata.recordHistory(pastMonth(Date.now()).rows, []);
    await idle.startHistory();
    await using idleServer = idle.listen();
    await using full = await openFullPage();
    for (const [name, { url }] of Object.entries({ idle: idleServer, full })) {
      for (const range of RANGES) {
        heights[`${name}, ${range}`] = await screens(`${url}/?range=${range}`);
      }
    }
    const tall = Object.entries(heights).filter(([, height]) => height > SCREENS_MAX);
    assert.deepEqual(tall, [], JSON.stringify(heights));
  },
);

testUnless(
  programsMissing("chromium"),
  "page: with all that it can have, it is small, and painted without anything else",
  async () => {
    await using page = await openFullPage();
    const { url } = page;
    await using browser = await openBrowser();
    await using tab = await browser.tab();
    for (const range of RANGES) {
      const page = await fetch(`${url}/?range=${range}`, { headers: { accept: "text/html" } });
      const { length } = await page.bytes();
      assert.ok(length < BYTES_MAX, `${range}: ${length} bytes`);
      tab.requested.length = 0;
      await tab.open(`${url}/?range=${range}`);
      await tab.read(PAINTED);
      // Nothing else may hold up the first paint, such as a style sheet or a font.
      const others = tab.requested.filter((one) => !one.startsWith("data:"));
      assert.deepEqual(others, [`${url}/?range=${range}`]);
      const elements = await tab.read<number>(`document.querySelectorAll("*").length`);
      assert.ok(elements < ELEMENTS_MAX, `${range}: ${elements} elements`);
      const told = await tab.read<string>(`document.querySelector("main").innerText`);
      assert.deepEqual(
        told.match(/\b[\d.]+(?:ms|s|min|h|d|%|[KMGT]?i?B)(?![\w.])/g),
        null,
        "one way of units",
      );
    }
  },
);
