import assert from "node:assert/strict";
import { openBrowser } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { pageTest, textOf } from "../support/shown_page.ts";
import { makeStoreObject } from "../support/store_object.ts";
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
  "page actions: after an unpin the list is open where it was, and the page says what went",
  async () => {
    const objects = Array.from(
      { length: 12 },
      (_, seed) => makeStoreObject({ name: `kept-${seed}`, seed }),
    );
    await using upstream = await fakeUpstream({ objects, stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    for (const { storePathHash } of objects) {
      await cache.narinfo(storePathHash);
      await cache.request("POST", `/pin/${storePathHash}.narinfo`);
    }
    await using server = cache.listen();
    await using browser = await openBrowser();
    await using tab = await browser.tab();
    for (const query of ["?all&range=week", "?range=week"]) {
      await tab.open(`${server.url}/${query}`);
      const rows = `[...document.querySelectorAll("#pins .pin")]`;
      const [name, next] = await tab.read<[string, string]>(
        `[4, 5].map((at) => ${rows}[at].querySelector("a").textContent)`,
      );
      await tab.read(`${rows}[4].closest(".more")?.setAttribute("open", "")`);
      await tab.read(`void ${rows}[4].querySelector("button").click()`);
      await eventually("the page is back, and says it", async () => {
        try {
          return (await textOf(tab, "unpinned")) === `Unpinned ${name}.`;
        } catch {
          // Between two pages there is none.
          return false;
        }
      });
      const at = await tab.read<string>("location.search");
      assert.equal(new URLSearchParams(at).has("all"), query.includes("all"), at);
      assert.equal(new URLSearchParams(at).get("range"), "week");
      const isInSight = `(() => {
        const said = document.getElementById("unpinned").getBoundingClientRect();
        const row = ${rows}.find((one) => one.querySelector("a").textContent === "${next}");
        const { top, bottom } = row.getBoundingClientRect();
        return row.checkVisibility() && top >= 0 && bottom <= innerHeight &&
          said.top >= 0 && said.bottom <= innerHeight;
      })()`;
      await eventually(
        "the next pin and the words are in sight",
        () => tab.read<boolean>(isInSight),
      );
    }
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
