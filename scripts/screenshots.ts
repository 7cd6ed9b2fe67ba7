// Takes the pictures of the status page in docs: a real larder with upstreams, pins and downloads.
// The month before is written into its database, and the addresses of this machine are replaced by
// names that a reader knows. Needs chromium and the DejaVu fonts, which most machines have. It shows
// no other font, so that the pictures are those of a machine without Inter.
import { openBrowser, type Tab } from "../tests/support/browser.ts";
import { eventually } from "../tests/support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../tests/support/fake_upstream.ts";
import { Gate } from "../tests/support/faults.ts";
import { type LarderProcess, startLarder } from "../tests/support/larder_process.ts";
import { makeStoreObject, type StoreObject } from "../tests/support/store_object.ts";
import { tempFolder } from "../tests/support/temp_folder.ts";
import { writePast } from "./screenshots/past.ts";
import { PULL_ID } from "../tests/support/past_pull.ts";

/** Of the package fonts-dejavu-core. */
const FONTS = "/usr/share/fonts/truetype/dejavu";

const DESKTOP = 1_200;
const PHONE = 390;

/** The host name of the server in the pictures. */
const HOST = "larder.example";

/** Clients pull each kept object so often: nine in ten of their requests are hits. */
const PULLS = 14;

/** The downloads last as long as the pictures, and are no slower than people expect. */
const [FLOW_BYTES, FLOW_EVERY_MS] = [200_000, 100];

const glibc = makeStoreObject({ name: "glibc-2.42", size: 900_000 });
const openssl = makeStoreObject({ name: "openssl-3.6.0", references: [glibc], size: 300_000 });
const git = makeStoreObject({
  name: "git-2.52.0",
  references: [glibc, openssl],
  size: 600_000,
});
const hello = makeStoreObject({ name: "hello-2.12.2", references: [glibc], size: 60_000 });
const rust = makeStoreObject({ name: "rustc-1.91.1", references: [glibc], size: 3_800_000 });
/** The object that clients request while no upstream answers. */
const missing = makeStoreObject({ name: "missing-1.0" });
const KEPT = [glibc, openssl, git, hello, rust];
const LARGE = ["firefox-145.0", "libreoffice-25.8.3", "chromium-143.0"].map((name, index) =>
  makeStoreObject({ name, references: [glibc], size: 72_000_000 + 27_000_000 * index })
);

using fonts = tempFolder();
useFonts(fonts.path);
const gate = new Gate();
await using upstream = await fakeUpstream({ objects: [...KEPT, ...LARGE], stored: true });
await using other = await fakeUpstream({});
using folder = tempFolder();
await writePast(folder.path);
await using larder = await startLarder({
  "cache-storage-local": folder.path,
  "cache-upstream-url": [upstream.url, other.url],
  "cache-upstream-public-key": [upstream.publicKey, other.publicKey],
  "cache-hostname": HOST,
  "cache-max-size": "50G",
  // It would read the files of the past, which have no content.
  "cache-recompress": "off",
});
const names = [
  [new URL(upstream.url).host, "cache.nixos.org"],
  [new URL(other.url).host, "nix-community.cachix.org"],
] as const;
await pictureOfNew();
await pictureOfPins();
await using browser = await browserFor(larder);
await using tab = await browser.tab();

for (let count = 0; count < PULLS; count++) {
  for (const object of KEPT) await pull(object);
}
for (const object of [git, hello]) {
  await fetch(`${larder.url}/pin/${object.storePathHash}.narinfo`, { method: "POST" });
}
const abort = new AbortController();
const flow = setInterval(() => gate.release(FLOW_BYTES), FLOW_EVERY_MS);
const downloads = await startDownloads(LARGE.slice(0, 1));
await picture("light", { scheme: "light" });
await picture("dark", { scheme: "dark" });
await tab.prefer("light");
await tab.open(`http://${HOST}/pulls/${PULL_ID}`);
Deno.writeFileSync("docs/pull.png", await tab.screenshot());
await picture("mobile", { scheme: "light", width: PHONE });
downloads.push(...await startDownloads(LARGE.slice(1)));
await picture("busy", { scheme: "light", range: "month" });
const list = [...KEPT.slice(0, 3), ...LARGE.slice(1), missing].map(({ storePath }) => storePath);
await picture("list", { scheme: "light", query: `&q=${list.join("+")}`, only: "#packages" });
clearInterval(flow);
await breakUpstreams([upstream, other]);
const query = `&q=${missing.storePathHash}`;
await picture("broken", { scheme: "light", range: "week", query });
abort.abort();
for (const download of downloads) {
  await download.then((answer) => answer.body?.cancel()).catch(() => undefined);
}

interface Look {
  readonly scheme: "light" | "dark";
  readonly width?: number;
  readonly range?: string;
  /** More of the address. */
  readonly query?: string;
  /** The only part in the picture. */
  readonly only?: string;
  /** A fold that is open. */
  readonly open?: string;
}

/** A browser that finds this larder under the name in the pictures. */
function browserFor({ port }: LarderProcess) {
  return openBrowser(`--host-resolver-rules=MAP ${HOST}:80 127.0.0.1:${port}`);
}

/** The page of a cache that no client has used, on a phone. */
async function pictureOfNew(): Promise<void> {
  using folder = tempFolder();
  await using larder = await startLarder({
    "cache-storage-local": folder.path,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-hostname": HOST,
    "cache-max-size": "50G",
  });
  await using browser = await browserFor(larder);
  await using tab = await browser.tab();
  await picture("new", { scheme: "light", width: PHONE, range: "hour" }, tab);
}

/** Systems that roll under a name and are kept complete, and a pin that lacks a path. */
async function pictureOfPins(): Promise<void> {
  const gone = makeStoreObject({ name: "gcc-15.2.0-lib", size: 1_000 });
  const toolchain = makeStoreObject({ name: "toolchain-15", references: [glibc, gone, rust] });
  const systems = ["25.11.1", "25.11.2"].map((version) =>
    makeStoreObject({ name: `nixos-system-laptop-${version}`, references: [glibc, git, hello] })
  );
  const objects = [...KEPT, ...systems, toolchain];
  await using upstream = await fakeUpstream({ objects, stored: true });
  using folder = tempFolder();
  await using larder = await startLarder({
    "cache-storage-local": folder.path,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-hostname": HOST,
  });
  const change = async (path: string, method: string) => {
    const answer = await fetch(`${larder.url}${path}`, { method });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`Cannot ${method} ${path}: ${answer.status}`);
  };
  for (const { storePathHash: root } of [toolchain, ...systems]) {
    await change(`/${root}.narinfo`, "GET");
    const query = `name=host/laptop&keep=2&root=${root}&keep-complete=true`;
    await change(
      root === toolchain.storePathHash ? `/pin/${root}.narinfo` : `/pins/names?${query}`,
      "POST",
    );
  }
  await eventually("larder has looked at the pins", async () => {
    const { pins } = await (await fetch(`${larder.url}/stats`)).json();
    const missing = pins.roots.map(({ look, stored }: Looked) => stored && look?.missing);
    return missing.toSorted().join() === "0,0,3";
  });
  await using browser = await browserFor(larder);
  await using tab = await browser.tab();
  await picture("pins", { scheme: "light", only: "#pins", open: "#pins > details" }, tab);
}

interface Looked {
  readonly stored: number | null;
  readonly look: { readonly missing: number } | null;
}

async function picture(name: string, look: Look, inTab?: Tab): Promise<void> {
  const { scheme, width = DESKTOP, range = "day", query = "", only, open } = look;
  const shown = inTab ?? tab;
  await shown.resize(width, 800);
  await shown.prefer(scheme);
  await shown.open(`http://${HOST}/?range=${range}${query}`);
  await nameUpstreams(shown);
  if (only !== undefined) {
    await shown.read(
      `for (const one of document.querySelectorAll("main *")) {
      const isShown = one.closest("${only}") !== null || one.querySelector("${only}") !== null;
      if (!isShown) one.style.display = "none";
    }`,
    );
  }
  if (open !== undefined) await shown.read(`document.querySelector("${open}").open = true`);
  Deno.writeFileSync(`docs/page-${name}.png`, await shown.screenshot());
}

/** Shows the names of well-known caches in place of this machine's addresses. */
async function nameUpstreams(tab: Tab): Promise<void> {
  await tab.read(`{
    window.fetch = () => new Promise(() => {});
    const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (words.nextNode()) {
      for (const [address, name] of ${JSON.stringify(names)}) {
        words.currentNode.data = words.currentNode.data
          .replaceAll("http://" + address, "https://" + name).replaceAll(address, name);
      }
    }
  }`);
}

async function startDownloads(objects: readonly StoreObject[]): Promise<Promise<Response>[]> {
  upstream.breakNar(gate.fault);
  const started: Promise<Response>[] = [];
  for (const object of objects) {
    const url = narUrl(larder, await textOf(object));
    started.push(fetch(url, { signal: abort.signal }));
  }
  gate.release(9_000_000);
  await eventually("the downloads and the pins show", async () => {
    const { downloads, pins } = await (await fetch(`${larder.url}/stats`)).json();
    return downloads.under_way.every(({ received_bytes, bytes_per_second }: Moving) => {
      return received_bytes >= 9_000_000 && bytes_per_second !== null;
    }) && pins.roots.every(({ stored }: { stored: number | null }) => stored !== null);
  });
  return started;
}

interface Moving {
  readonly received_bytes: number;
  readonly bytes_per_second: number | null;
}

/** Ends the upstreams, and lets clients find out. */
async function breakUpstreams(all: readonly FakeUpstream[]): Promise<void> {
  for (const one of all) await one[Symbol.asyncDispose]();
  await eventually("larder knows", async () => {
    await (await fetch(`${larder.url}/${missing.storePathHash}.narinfo`)).text();
    const { upstreams, downloads } = await (await fetch(`${larder.url}/stats`)).json();
    return upstreams.every(({ is_up }: { is_up: boolean }) => !is_up) &&
      downloads.under_way.every(({ bytes_per_second }: Moving) => !bytes_per_second);
  });
}

async function pull(object: StoreObject): Promise<void> {
  const answer = await fetch(narUrl(larder, await textOf(object)));
  await answer.bytes();
  if (answer.headers.get("x-cache") === "HIT") return;
  await eventually("it is kept", async () => {
    const { downloads } = await (await fetch(`${larder.url}/stats`)).json();
    return downloads.count === 0;
  });
}

async function textOf({ storePathHash }: StoreObject): Promise<string> {
  return await (await fetch(`${larder.url}/${storePathHash}.narinfo`)).text();
}

function narUrl({ url }: LarderProcess, text: string): string {
  return `${url}/${/^URL: (.*)$/m.exec(text)?.[1]}`;
}

/** Lets the browsers that start from now on know the DejaVu fonts alone. */
function useFonts(folder: string): void {
  Deno.statSync(`${FONTS}/DejaVuSans-Bold.ttf`);
  const path = `${folder}/fonts.conf`;
  Deno.writeTextFileSync(
    path,
    `<?xml version="1.0"?>
<fontconfig>
  <dir>${FONTS}</dir>
  <cachedir>${folder}/fonts</cachedir>
  <alias binding="same">
    <family>monospace</family>
    <prefer><family>DejaVu Sans Mono</family></prefer>
  </alias>
  <match>
    <edit name="family" mode="append_last" binding="strong"><string>DejaVu Sans</string></edit>
  </match>
</fontconfig>
`,
  );
  Deno.env.set("FONTCONFIG_FILE", path);
}
