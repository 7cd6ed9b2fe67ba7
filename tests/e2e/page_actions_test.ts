import assert from "node:assert/strict";
import { openBrowser } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { pageTest, textOf } from "../support/shown_page.ts";
import { TestCache } from "../support/test_cache.ts";

const UNPIN = `document.querySelector("#pins details")`;

pageTest(
  "page actions: unpinning takes two clicks, and refreshing closes nothing",
  async ({ tab, url }) => {
    // Pinning, evicting and unpinning: the first click only opens a form. A search changes nothing.
    const buttons = `[...document.querySelectorAll("form[method=post]:not([role=search]) button")]`;
    assert.deepEqual(
      await tab.read(`${buttons}.map((button) => button.form.getAttribute("action")).sort()`),
      ["page/evict", "page/pin", "page/unpin"],
    );
    assert.equal(await tab.read(`${buttons}.some((button) => button.checkVisibility())`), false);
    const isButtonShown = `${UNPIN}.querySelector("button").checkVisibility()`;
    await tab.read(`${UNPIN}.querySelector("summary").click()`);
    assert.equal(await tab.read(isButtonShown), true);
    await tab.read(`document.dispatchEvent(new Event("visibilitychange"))`);
    const asked = () => tab.requested.filter((one) => one === `${url}/`).length;
    const before = asked();
    await tab.read(`document.dispatchEvent(new Event("visibilitychange"))`);
    await eventually("it refreshes", () => asked() > before);
    assert.equal(await tab.read(`${UNPIN}.open`), true);

    await tab.read(`void ${UNPIN}.querySelector("button").click()`);
    await eventually("it is unpinned, and the page is back", async () => {
      try {
        return (await textOf(tab, "pins")).startsWith("Nothing is pinned.");
      } catch {
        // Between two pages there is none.
        return false;
      }
    });
    assert.deepEqual(await (await fetch(`${url}/pins`)).json(), []);
    assert.equal(await tab.read("location.pathname"), "/");
    assert.deepEqual(tab.complaints, []);
  },
);

testUnless(
  programsMissing("chromium"),
  "page actions: a browser that signed in has the buttons, and sends its token on",
  async () => {
    const tokens = [{ name: "root", role: "admin", secret: "sesame" }] as const;
    await using cache = await TestCache.open({ upstreams: [], tokens });
    await using server = cache.listen();
    await using browser = await openBrowser();
    await using tab = await browser.tab();
    const actions = `[...document.querySelectorAll("form[method=post]:not([role=search])")]
      .map((form) => form.getAttribute("action"))`;
    await tab.open(`${server.url}/`);
    assert.deepEqual(await tab.read(actions), []);
    const signIn = await tab.read<string>(`document.querySelector("footer a[href=sign-in]").href`);

    await tab.typePassword("sesame");
    await tab.open(signIn);
    for (let count = 0; count < 2; count++) {
      assert.equal(await tab.read("location.pathname"), "/");
      assert.deepEqual(await tab.read(actions), ["page/evict", "page/pin"]);
      await tab.open(`${server.url}/`);
    }
  },
);
