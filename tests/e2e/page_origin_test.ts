import assert from "node:assert/strict";
import { Answer } from "../../src/http/message/message.ts";
import { openBrowser, type Tab } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { TestListener } from "../support/test_listener.ts";

const object = makeStoreObject({ name: "kept", size: 20_000 });
const other = makeStoreObject({ name: "other", size: 30_000 });
const pinOf = ({ storePathHash }: typeof object) => `/pin/${storePathHash}.narinfo`;
const rollOf = ({ storePathHash }: typeof object) =>
  `/pins/names?name=a&keep=1&root=${storePathHash}`;

/** Labels nearly as long as they can be. */
const LONG_NAME = `${"nas-of-the-whole-household".repeat(2)}.${"home".repeat(15)}.test`;

/** Its owner can make it lead anywhere, and so to a cache in a visitor's own network. */
const FOREIGN_NAME = "evil.test";

interface Scene {
  readonly cache: TestCache;
  readonly tab: Tab;
  readonly port: number;
}

originTest("a page of another origin pins, unpins and evicts nothing", async (scene) => {
  const { cache, tab, port } = scene;
  await using page = new TestListener({
    handle: () => Promise.resolve(new Answer("", 200, { "content-type": "text/html" })),
  });
  const ours = `http://127.0.0.1:${port}`;
  for (const host of ["127.0.0.1", "localhost", FOREIGN_NAME]) {
    await tab.open(`http://${host}:${page.port}/`);
    const before = cache.logged("info").length;
    await tab.read(`(async () => {
      for (const action of ["${ours}/", "${ours}/gc?target=0", "${ours}${pinOf(other)}"]) {
        const form = document.createElement("form");
        const frame = document.createElement("iframe");
        frame.name = form.target = action;
        Object.assign(form, { method: "POST", action });
        document.body.append(frame, form);
        form.submit();
        await fetch(action, { method: "POST", mode: "no-cors" });
      }
      await fetch("${ours}${pinOf(object)}", { method: "DELETE" }).catch(() => {});
    })()`);
    await eventually("all six are refused", () => refusals(cache, before).length >= 6);
    assert.deepEqual(new Set(refusals(cache, before)), new Set(["cross-origin page"]));
    await assertUntouched(scene);
  }
});

originTest("a page under a name that only leads here reads and changes nothing", async (scene) => {
  const { tab, port } = scene;
  await tab.open(`http://${FOREIGN_NAME}:${port}/healthz`);
  const asked = await tab.read(`(async () => {
    const told = [];
    for (const [method, path] of [
      ["GET", "/stats"], ["GET", "/pins"], ["GET", "/pins/names"], ["GET", "/"],
      ["GET", "/metrics"], ["POST", "/"], ["DELETE", "${pinOf(object)}"], ["POST", "${
    pinOf(other)
  }"],
      ["POST", "/gc?target=0"], ["POST", "${rollOf(other)}"],
    ]) {
      const options = { method, referrerPolicy: "no-referrer", headers: { "user-agent": "curl" } };
      const answer = await fetch(path, options);
      told.push(answer.status + " " + await answer.text());
    }
    return told;
  })()`);
  const line = `403 Forbidden: ${FOREIGN_NAME} is no name of this larder; add ` +
    `--server-allowed-hosts ${FOREIGN_NAME}\n`;
  assert.deepEqual(asked, Array.from({ length: 10 }, () => line));
  await assertUntouched(scene);
});

originTest("the page that refuses a name is no wider than a phone", async ({ tab, port }) => {
  for (const name of [FOREIGN_NAME, LONG_NAME]) {
    for (const width of [320, 390]) {
      await tab.resize(width, 740);
      await tab.open(`http://${name}:${port}/`);
      assert.match(await tab.read<string>("document.body.textContent"), /does not know this name/);
      const wide = await tab.read<string[]>(`[...document.querySelectorAll("body *")]
        .filter((one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).display !== "inline" ||
          one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML)`);
      assert.deepEqual(wide, [], `${name}, ${width} px`);
      assert.equal(await tab.read("document.documentElement.scrollWidth"), width);
    }
  }
});

originTest("our own page reads, pins, unpins and evicts", async ({ cache, tab, port }) => {
  for (const host of ["127.0.0.1", "localhost"]) {
    await tab.open(`http://${host}:${port}/`);
    const statuses = await tab.read(`(async () => {
      const statuses = [];
      for (const [method, path] of [
        ["GET", "/stats"], ["POST", "${pinOf(other)}"], ["DELETE", "${pinOf(other)}"],
        ["POST", "/gc?target=100000000"],
      ]) statuses.push((await fetch(path, { method })).status);
      return statuses;
    })()`);
    assert.deepEqual(statuses, [200, 200, 200, 200]);
  }
  assert.deepEqual(refusals(cache), []);
});

function refusals(cache: TestCache, from = 0): readonly unknown[] {
  return cache.logged("info").slice(from)
    .filter(({ msg }) => msg === "request refused").map(({ reason }) => reason);
}

async function assertUntouched({ cache }: Scene): Promise<void> {
  assert.deepEqual(await (await cache.get("/pins")).json(), [object.storePathHash]);
  assert.equal((await cache.narNames()).length, 2);
}

/** Two NARs that are kept, the first one pinned, and a browser. */
function originTest(name: string, test: (scene: Scene) => Promise<void>): void {
  testUnless(programsMissing("chromium"), `origins: ${name}`, async () => {
    await using upstream = await fakeUpstream({ objects: [object, other], stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    for (const { storePathHash } of [object, other]) {
      await (await cache.get(await cache.narPath(storePathHash))).bytes();
    }
    await cache.downloadsOver();
    assert.equal((await cache.request("POST", pinOf(object))).status, 200);
    await using server = cache.listen();
    await using browser = await openBrowser("--host-resolver-rules=MAP *.test 127.0.0.1");
    await using tab = await browser.tab();
    await test({ cache, tab, port: server.port });
  });
}
