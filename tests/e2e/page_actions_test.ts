import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { pageTest, textOf } from "../support/shown_page.ts";

const UNPIN = `document.querySelector("#pins details")`;

pageTest(
  "page actions: unpinning takes two clicks, and refreshing closes nothing",
  async ({ tab, url }) => {
    // Pinning, evicting and unpinning: the first click only opens a form.
    const buttons = `[...document.querySelectorAll("form[method=post] button")]`;
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
