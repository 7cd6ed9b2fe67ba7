import assert from "node:assert/strict";
import { TIERS } from "../../src/metadata/history_keeper.ts";
import { eventually } from "../support/eventually.ts";
import { LAID_OUT, pageTest, textOf } from "../support/shown_page.ts";

pageTest(
  "page: it refreshes itself, and sends requests to this cache alone",
  async ({ tab, gate, url }) => {
    assert.match(await textOf(tab, "transfers"), /^long-.*1\.0\d+ %\d.* of 3\.8 MiB.*, began/);
    assert.match(await textOf(tab, "pins"), /^long-/);
    assert.match(await textOf(tab, "upstreams"), /up http:\S+ ?found/);
    assert.match(await textOf(tab, "upstreams"), /down http:\/\/127\.0\.0\.1:1 ?priority/);
    assert.match(await textOf(tab, "upstreams"), /Last error .*: it cannot be reached/);
    assert.match(await textOf(tab, "problems"), /warning Upstream failed/);
    assert.match(await textOf(tab, "space"), /of 8\.6 MiB used/);
    const settings = await tab.read<string>(`document.querySelector("#use code").textContent`);
    assert.match(
      settings,
      new RegExp(`^extra-substituters = ${url}\nextra-trusted-public-keys = `),
    );

    gate.open();
    await eventually("the page shows that the download is over", async () => {
      return await textOf(tab, "transfers") === "Nothing at the moment.";
    });
    const hosts = new Set(
      tab.requested.filter((one) => !one.startsWith("data:")).map((one) => {
        return new URL(one).origin;
      }),
    );
    assert.deepEqual([...hosts], [url]);
    assert.ok(tab.requested.filter((one) => one === `${url}/`).length > 1);
    assert.deepEqual(tab.complaints, []);
  },
);

pageTest("page: a chart tells the values below the pointer, and another range", async (page) => {
  const { tab, beganAtMs } = page;
  const choose = async (range: string) => {
    await tab.read(`document.getElementById("range-${range}").click()`);
    await eventually(`the charts are those of the ${range}`, async () => {
      return new RegExp(`fetched in the last ${range}`).test(await textOf(tab, "charts"));
    });
  };
  await choose("day");
  const detail = `document.querySelector(".chart [data-rest]").textContent`;
  const before = await tab.read<string>(detail);
  const over = (selector: string, leftPx = 0) =>
    tab.read(`{
      const one = document.querySelector("${selector}");
      const clientX = one.getBoundingClientRect().right - 1 - ${leftPx};
      one.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX }));
    }`);
  const box = `document.querySelector(".cursor").getBoundingClientRect()`;
  await over(".plot svg");
  assert.ok(await tab.read<number>(`${box}.height`) > 50, "a column is as high as its chart");
  assert.ok(await tab.read<number>(`${box}.width`) > 2);
  const right = `document.querySelector(".plot svg").getBoundingClientRect().right`;
  assert.ok(await tab.read<number>(`Math.abs(${box}.right - ${right})`) < 1, "it is the last one");
  const columnOf = (atMs: number) => Math.floor(atMs / TIERS.day.stepMs);
  // Its bytes are in the column in which it began, which may be the last but one by now.
  const width = await tab.read<number>(`${box}.width`);
  await over(".plot svg", (columnOf(Date.now()) - columnOf(beganAtMs)) * width);
  assert.match(await tab.read(detail), /^\d\d:\d\d: served 3\.8 MiB, fetched \d/);
  await over("h1");
  assert.equal(await tab.read(detail), before);

  await choose("week");
  assert.equal(await tab.read("location.search"), "?range=week");
  assert.equal(await tab.read(`document.querySelector("[aria-current]").id`), "range-week");
});

pageTest("page: a cache that does not answer is said, and said to be over", async ({ tab }) => {
  const line = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
  assert.equal(await textOf(tab, "trouble"), "");
  await tab.send("Network.emulateNetworkConditions", { ...line, offline: true });
  await eventually(
    "the page says so",
    async () => /are old/.test(await textOf(tab, "trouble")),
  );
  await tab.send("Network.emulateNetworkConditions", { ...line, offline: false });
  await eventually("it is over", async () => await textOf(tab, "trouble") === "");
});

pageTest("page: it asks every 5 seconds; hidden or paused it asks for nothing", async (page) => {
  const { tab, url } = page;
  // The test replaces the page's clock, and so sees later actions at once.
  await tab.read(`
    window.delaysMs = [];
    window.setTimeout = (_, ms) => void window.delaysMs.push(ms);
    Object.defineProperty(document, "hidden", { get: () => window.isHidden ?? false });
    window.seen = (isSeen) => {
      window.isHidden = !isSeen;
      document.dispatchEvent(new Event("visibilitychange"));
    };
    seen(false);
  `);
  // One that began before is answered first.
  const asksFor = (urls: readonly string[]) => urls.filter((one) => one === `${url}/`).length;
  const isQuiet = () => asksFor(tab.requested) === asksFor(tab.answered);
  await eventually("no request is in flight", isQuiet);
  const answers = () => tab.answered.length;
  const timers = () => tab.read<number>("delaysMs.length");
  const before = answers();
  await tab.read("seen(true)");
  await eventually("it asks when it is seen", () => answers() === before + 1);
  await eventually("and goes on", async () => await timers() === 1);
  await tab.read("seen(true); seen(false)");
  await eventually("the request is answered", () => answers() === before + 2);
  await tab.read("new Promise((resolve) => requestAnimationFrame(resolve))");
  assert.equal(await timers(), 1, "but nothing more, while nobody looks");

  await tab.read("seen(true)");
  await eventually("it goes on", async () => await timers() === 2);
  await tab.read(`document.getElementById("pause").click(); seen(true)`);
  const pressed = `document.getElementById("pause").getAttribute("aria-pressed")`;
  assert.equal(await tab.read(pressed), "true");
  assert.equal(answers(), before + 3);
  await tab.read(`document.getElementById("pause").click()`);
  await eventually("it goes on", () => answers() === before + 4);
  await eventually("with a timer", async () => await timers() === 3);
  assert.deepEqual(await tab.read("delaysMs"), [5_000, 5_000, 5_000]);
});

pageTest("page: the lines are copied, also where there is no clipboard", async ({ tab, url }) => {
  await tab.read(`
      Object.defineProperty(navigator, "clipboard", { value: undefined });
      document.addEventListener("copy", () => window.copied = String(getSelection()));
      document.querySelector("header a[href='#use']").click();
    `);
  await eventually("the link opens the fold", async () => {
    return await tab.read(`document.querySelector(".copy").checkVisibility()`);
  });
  await tab.read(`
      document.querySelector(".copy").focus();
    `);
  await tab.press("Enter");
  await eventually("it says so", async () => await textOf(tab, "copied") === "Copied.");
  const lines = new RegExp(`^extra-substituters = ${url}\\nextra-`);
  assert.match(await tab.read("window.copied"), lines);
  assert.equal(await tab.read("document.activeElement.className"), "copy");

  await tab.read(`document.execCommand = () => false; document.querySelector(".copy").click()`);
  await eventually("it names the key to press", async () => {
    return /^Selected/.test(await textOf(tab, "copied"));
  });
  assert.match(await tab.read("String(getSelection())"), lines);
});

pageTest(
  "page: without JavaScript its figures are those of when it was sent",
  async ({ tab, url }) => {
    await tab.send("Emulation.setScriptExecutionDisabled", { value: true });
    await tab.open(`${url}/`);
    const { root } = await tab.send("DOM.getDocument", { depth: 0 }) as {
      root: { nodeId: number };
    };
    const { outerHTML } = await tab.send("DOM.getOuterHTML", { nodeId: root.nodeId });
    assert.match(String(outerHTML), /<progress aria-label="Download of long-/);
    assert.match(String(outerHTML), /<button type="button" class="copy" hidden="">/);
    await tab.send("Emulation.setScriptExecutionDisabled", { value: false });
  },
);

pageTest(
  "page: its search takes a long list of paths, and a short one is in the URL",
  async (page) => {
    const { tab, url } = page;
    const search = async (paths: number) => {
      await tab.open(`${url}/`);
      await tab.read(LAID_OUT);
      const typed = "Array.from({ length: " + paths + " }, (_, at) => " +
        '"/nix/store/" + String(at).padStart(32, "0") + "-a-name-of-some-length-1.2.3").join("\\n")';
      await tab.read(`{
      const query = document.getElementById("query");
      query.value = ${typed};
      const key = { key: "Enter", bubbles: true, cancelable: true };
      query.dispatchEvent(new KeyboardEvent("keydown", key));
    }`);
      await eventually("the result is there", async () => {
        const text = await tab.read<string>(`document.body?.textContent ?? ""`).catch(() => "");
        return text.includes(`Of ${paths.toLocaleString("en-US")} paths: `);
      });
      return await tab.read<string>("location.search");
    };
    assert.match(await search(3), /^\?q=/);
    // Browsers cut the text of an input after half a mebibyte.
    assert.equal(await search(9_000), "");
  },
);
