import { type Browser, openBrowser, type Tab } from "./browser.ts";
import { fakeUpstream } from "./fake_upstream.ts";
import { Gate } from "./faults.ts";
import { programsMissing, testUnless } from "./program.ts";
import { makeStoreObject } from "./store_object.ts";
import { TestCache } from "./test_cache.ts";
import { reportedMembers } from "./reported_members.ts";
import { rowsOf, Timeline } from "../../src/history/history.ts";
import type { HistoryRow } from "../../src/metadata/history_keeper.ts";

const MINUTE_MS = 60_000;

const object = makeStoreObject({ name: `long-${"name-".repeat(20)}1.0`, size: 4_000_000 });

/** Resolves when the page shows the parts below the window, too. */
export const LAID_OUT = `new Promise((laidOut) => {
  const check = () => document.querySelector(".painted") ? laidOut() : requestAnimationFrame(check);
  check();
})`;

export interface ShownPage {
  readonly tab: Tab;
  readonly browser: Browser;
  /** When the cache had not yet served anything, in ms since 1970. */
  readonly beganAtMs: number;
  /** Of the cache, without a slash at its end. */
  readonly url: string;
  /** Lets the download that is shown go on to its end. */
  readonly gate: Gate;
}

/** Registers a test that looks at the page in a browser. */
export function pageTest(name: string, check: (page: ShownPage) => Promise<void>): void {
  testUnless(programsMissing("chromium"), name, () => withShownPage(check));
}

/**
 * Shows the page of a cache with something in each of its parts. A download is at its first
 * million of bytes. There are a pin, traffic of the last day, and other members. An upstream cannot be reached, and the page
 * warns about it.
 */
async function withShownPage(check: (page: ShownPage) => Promise<void>): Promise<void> {
  const gate = new Gate();
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNar(gate.fault);
  const upstreams = [upstream, "http://127.0.0.1:1"];
  const members = reportedMembers({
    running: {},
    draining: { status: { is_draining: true, host: "larder-".repeat(9) } },
    gone: { silentMs: 90_000 },
  });
  await using cache = await TestCache.open({ upstreams, members, limitBytes: 9_000_000 });
  await cache.metadata.recordHistory(someTraffic(Date.now()), []);
  await cache.startHistory();
  await using server = cache.listen();
  const beganAtMs = Date.now();
  const path = await cache.narPath(object.storePathHash);
  gate.release(1_000_000);
  const answer = await cache.get(path);
  await cache.reportToMembers();
  await cache.request("POST", `/pin/${object.storePathHash}.narinfo`);
  await using browser = await openBrowser();
  await using tab = await browser.tab();
  await tab.open(`${server.url}/`);
  await tab.read(LAID_OUT);
  try {
    await check({ tab, browser, beganAtMs, url: server.url, gate });
  } finally {
    gate.open();
    await answer.bytes();
    await cache.downloadsOver();
  }
}

/** Traffic at times within the last hour and the last day, so that both have charts. */
function someTraffic(nowMs: number): readonly HistoryRow[] {
  const past = new Timeline();
  for (let count = 1; count < 5; count++) {
    const amounts = { served_bytes: count * 2 ** 20, nar_hits: 2 * count, nar_misses: 9 - count };
    const recent = rowsOf(amounts, nowMs - count * 10 * MINUTE_MS);
    past.merge(recent.filter(({ tier }) => tier === "hour"));
    const earlier = rowsOf(amounts, nowMs - count * 300 * MINUTE_MS);
    past.merge(earlier.filter(({ tier }) => tier === "day" || tier === "week"));
  }
  return past.rows();
}

/** The text of the part of the page with this id, in one line. */
export async function textOf(tab: Tab, id: string): Promise<string> {
  const text = await tab.read<string>(`document.getElementById("${id}").textContent`);
  return text.replace(/\s+/g, " ");
}
