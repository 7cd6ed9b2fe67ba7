/**
 * Takes docs/dashboard.png: each panel of the dashboard with the answers of a real Prometheus after
 * a minute of load on a real larder. Fails if a panel has no data and does not say why. Needs
 * prometheus and chromium.
 */
import { openBrowser } from "../tests/support/browser.ts";
import { fakeUpstream } from "../tests/support/fake_upstream.ts";
import { startLarder } from "../tests/support/larder_process.ts";
import { Prometheus } from "../tests/support/prometheus.ts";
import { makeStoreObject, type StoreObject } from "../tests/support/store_object.ts";
import { tempFolder } from "../tests/support/temp_folder.ts";
import { SECTIONS } from "./grafana/dashboard.ts";
import { asSent } from "./grafana/expressions.ts";
import type { Panel } from "./grafana/panel.ts";
import { pictureHtml } from "./grafana/picture.ts";
import type { Series } from "./grafana/series.ts";

const LOAD_S = 60;
const CLIENTS = 3;
const PAUSE_MS = 60;
const PICTURE = { width: 1_240, height: 1_990 } as const;

const objects = Array.from(
  { length: 40 },
  (_, at) => makeStoreObject({ name: `thing-${at}`, size: 200_000 + 60_000 * at }),
);
await using upstream = await fakeUpstream({ objects, stored: true });
await using other = await fakeUpstream({ objects: objects.slice(0, 5), stored: true });
await using larder = await startLarder({
  "cache-upstream-url": [upstream.url, other.url],
  "cache-upstream-public-key": [upstream.publicKey, other.publicKey],
  "cache-max-size": "40M",
  "prometheus-enabled": "true",
});
await using prometheus = await Prometheus.start(`127.0.0.1:${larder.port}`);
const fromS = Date.now() / 1_000;
const untilMs = performance.now() + LOAD_S * 1_000;
await Promise.all([...Array.from({ length: CLIENTS }, pullUntilTheEnd), breakTheOther()]);
await takePicture(await allSeries());

/** Requests small numbers most often, as clients of a real cache do. */
async function pullUntilTheEnd(): Promise<void> {
  while (performance.now() < untilMs) {
    const at = Math.floor(objects.length * Math.random() ** 3);
    await pull(objects[at] ?? objects[0]).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * Math.random()));
  }
}

async function pull(object: StoreObject | undefined): Promise<void> {
  const leaves = Math.random() < 0.05;
  const narinfo = await fetch(`${larder.url}/${object?.storePathHash}.narinfo`);
  const url = `${larder.url}/${/^URL: (.*)$/m.exec(await narinfo.text())?.[1]}`;
  const answer = await fetch(url);
  if (leaves) await answer.body?.cancel();
  else await answer.bytes();
}

async function breakTheOther(): Promise<void> {
  const aThird = () => new Promise((resolve) => setTimeout(resolve, LOAD_S * 1_000 / 3));
  await aThird();
  await other.stop();
  await aThird();
  await other.start();
}

async function allSeries(): Promise<ReadonlyMap<Panel, readonly Series[]>> {
  const found = new Map<Panel, readonly Series[]>();
  for (const panel of SECTIONS.flatMap(({ panels }) => panels)) {
    const toS = Date.now() / 1_000;
    const series = await Promise.all(
      panel.targets.map(({ expr, legend }) =>
        prometheus.range(asSent(expr, "5s"), { fromS, toS, stepS: 1 }, legend)
      ),
    );
    found.set(panel, series.flat());
    if (series.flat().length > 0 || panel.ifEmpty !== undefined) continue;
    throw new Error(`Cannot fill "${panel.title}": its expressions have no result`);
  }
  return found;
}

async function takePicture(series: ReadonlyMap<Panel, readonly Series[]>): Promise<void> {
  using folder = tempFolder();
  const path = `${folder.path}/dashboard.html`;
  Deno.writeTextFileSync(path, pictureHtml((panel) => series.get(panel) ?? []));
  await using browser = await openBrowser();
  await using tab = await browser.tab();
  await tab.resize(PICTURE.width, PICTURE.height);
  await tab.open(`file://${path}`);
  Deno.writeFileSync("docs/dashboard.png", await tab.screenshot());
}
