// Takes docs/page-light.png and docs/page-dark.png: the page with two upstreams, one of them gone,
// a few pins and a running download. Needs chromium.
import { openBrowser } from "../tests/support/browser.ts";
import { eventually } from "../tests/support/eventually.ts";
import { fakeUpstream } from "../tests/support/fake_upstream.ts";
import { Gate } from "../tests/support/faults.ts";
import { startLarder } from "../tests/support/larder_process.ts";
import { makeStoreObject, type StoreObject } from "../tests/support/store_object.ts";

const WIDTH = 900;
const HEIGHT = 600;

/** The host name of the server in the pictures. */
const HOST = "larder.example";

const glibc = makeStoreObject({ name: "glibc-2.42", size: 9_000_000 });
const openssl = makeStoreObject({ name: "openssl-3.6.0", references: [glibc], size: 3_000_000 });
const git = makeStoreObject({
  name: "git-2.52.0",
  references: [glibc, openssl],
  size: 6_000_000,
});
const hello = makeStoreObject({ name: "hello-2.12.2", references: [glibc], size: 60_000 });
const firefox = makeStoreObject({ name: "firefox-145.0", references: [glibc], size: 30_000_000 });
const KEPT = [glibc, openssl, git, hello];

const gate = new Gate();
await using upstream = await fakeUpstream({ objects: [...KEPT, firefox], stored: true });
await using larder = await startLarder({
  "cache-upstream-url": [upstream.url, "http://127.0.0.1:1"],
  "cache-upstream-public-key": upstream.publicKey,
  "cache-hostname": HOST,
  "cache-max-size": "64M",
});
for (let count = 0; count < 4; count++) {
  for (const object of KEPT) await pull(object);
}
for (const object of [git, hello]) {
  await fetch(`${larder.url}/pin/${object.storePathHash}.narinfo`, { method: "POST" });
}
upstream.breakNar(gate.fault);
gate.release(18_000_000);
const abort = new AbortController();
const narinfo = await textOf(firefox);
const download = fetch(narUrl(narinfo), { signal: abort.signal });
await eventually("the download and the pins show", async () => {
  const { downloads, pins } = await (await fetch(`${larder.url}/stats`)).json();
  return downloads.underWay[0]?.receivedBytes === 18_000_000 && pins.countedAt !== null &&
    pins.roots.every(({ stored }: { stored: number | null }) => stored !== null);
});
await takePictures();
abort.abort();
await download.then((answer) => answer.body?.cancel()).catch(() => undefined);

async function takePictures(): Promise<void> {
  const rule = `MAP ${HOST}:80 127.0.0.1:${larder.port}`;
  await using browser = await openBrowser(`--host-resolver-rules=${rule}`);
  await using tab = await browser.tab();
  await tab.resize(WIDTH, HEIGHT);
  for (const scheme of ["light", "dark"] as const) {
    await tab.prefer(scheme);
    await tab.open(`http://${HOST}/`);
    Deno.writeFileSync(`docs/page-${scheme}.png`, await tab.screenshot());
  }
}

async function pull(object: StoreObject): Promise<void> {
  const answer = await fetch(narUrl(await textOf(object)));
  await answer.bytes();
  if (answer.headers.get("x-cache") === "HIT") return;
  await eventually("it is kept", async () => {
    return (await fetch(answer.url, { method: "HEAD" })).headers.get("x-cache") === "HIT";
  });
}

async function textOf({ storePathHash }: StoreObject): Promise<string> {
  return await (await fetch(`${larder.url}/${storePathHash}.narinfo`)).text();
}

function narUrl(text: string): string {
  return `${larder.url}/${/^URL: (.*)$/m.exec(text)?.[1]}`;
}
