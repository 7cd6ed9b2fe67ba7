import assert from "node:assert/strict";
import { createContext, runInContext } from "node:vm";
import { buildSite, documentsIn, type Site } from "../../../scripts/docs/site.ts";
import { openBrowser } from "../../support/browser.ts";
import { programsMissing, testUnless } from "../../support/program.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;

const SUMMARY = "## Start\n\n* [larder](../README.md)\n* [Clients](clients.md)\n";

const TEXTS: Readonly<Record<string, string>> = {
  "docs/SUMMARY.md": SUMMARY,
  "README.md": "# larder\n\nFor [clients](docs/clients.md#the-key-and-more).\n",
  "docs/clients.md": "# Clients\n\n## The key, and more\n\n![A page](page.png)\n",
};

/** The search itself in place of an empty one. */
const OWN_SEARCH = Object.fromEntries(
  ["scripts/docs/find.js", "node_modules/minisearch/dist/umd/index.js"]
    .map((path) => [path, Deno.readTextFileSync(ROOT + path)]),
);

function siteWith(changed: Readonly<Record<string, string>>, sourceUrl?: string): Site {
  const texts = { ...TEXTS, ...changed };
  return buildSite({
    documents: Object.keys(texts).filter((path) => path.startsWith("docs/")),
    readText: (path) => texts[path] ?? "",
    sourceUrl,
  });
}

function pageOf(site: Site, file: string): string {
  return site.texts.get(file) ?? "";
}

/** The site of this repository. */
function ownSite(): Site {
  return buildSite({
    documents: documentsIn(ROOT),
    readText: (path) => Deno.readTextFileSync(ROOT + path),
  });
}

interface Hit {
  readonly url: string;
  readonly excerpt: string;
}

/** The search of a site, as a browser runs it. */
function searchOf(site: Site): (question: string) => readonly Hit[] {
  const context = createContext({});
  const scripts = ["minisearch.js", "find.js", "sections.js"].map((file) => pageOf(site, file));
  return runInContext(`${scripts.join("\n")}\nfinderOf(sections)`, context);
}

/** What people type, and a page that answers it. */
const QUESTIONS: Readonly<Record<string, string>> = {
  "move from ncps": "moving-from-ncps.html",
  "open to the internet": "security.html#a-public-server",
  "back up": "operation.html#backup",
  "upgrade": "upgrading.html",
  "a write token for CI": "uploading.html#server",
  "nginx or Caddy in front": "reverse-proxy.html",
  "50 GB": "eviction.html",
  "why is it slow": "troubleshooting.html#a-build-is-slow-to-start",
  "with Cachix": "upstreams.html#cachix",
  "two machines": "several-machines.html",
  "internet": "security.html#a-public-server",
  "expose": "security.html#a-public-server",
  "high availability": "several-machines.html",
  "rotate": "operation.html#rotation-of-the-signing-key",
  "uninstall": "installation.html#uninstall",
  "hash mismatch": "troubleshooting.html#nix-says-hash-mismatch",
  "slow": "troubleshooting.html#a-build-is-slow-to-start",
  "tls": "reverse-proxy.html#nginx-with-a-certificate",
  "size": "eviction.html",
  "token": "security.html#tokens",
  "cachix": "upstreams.html#cachix",
  "migrate": "moving-from-ncps.html",
  "forbidden": "troubleshooting.html#a-page-says-forbidden-or-that-larder-does-not-know-its-name",
  "403": "troubleshooting.html#a-page-says-forbidden-or-that-larder-does-not-know-its-name",
  "offline": "complete-pins.html#without-the-internet",
  "synology": "installation.html#synology-and-other-nas",
  "change port": "installation.html#change-the-port",
  "port": "installation.html#change-the-port",
  "hang": "troubleshooting.html#a-build-hangs",
  "it hangs": "troubleshooting.html#a-build-hangs",
  "stuck": "troubleshooting.html#a-build-hangs",
  "add a machine": "clients.html",
};

/** The same of words whose first hit led away. */
const FIRST_ANSWERS: Readonly<Record<string, string>> = {
  "50 GB": "eviction.html",
  "size": "eviction.html",
  "dashboard": "observability.html#prometheus-and-grafana",
  "raspberry pi": "installation.html#raspberry-pi",
  "add a machine": "clients.html",
};

const HITS_AT_A_GLANCE = 4;

Deno.test("docs site: that of this repository has a place for each page", () => {
  assert.deepEqual(ownSite().problems, []);
});

Deno.test("docs site: the search leads from what people type to the page that answers it", () => {
  const find = searchOf(ownSite());
  for (const [question, answer] of Object.entries(QUESTIONS)) {
    const found = find(question).slice(0, HITS_AT_A_GLANCE).map(({ url }) => url);
    assert.ok(found.some((url) => url.startsWith(answer)), `${question}: ${found.join(", ")}`);
  }
});

Deno.test("docs site: a search by a common word has its answer first, and no other cache's", () => {
  const find = searchOf(ownSite());
  for (const [question, answer] of Object.entries(FIRST_ANSWERS)) {
    assert.ok(find(question)[0]?.url.startsWith(answer), question);
  }
  for (const question of ["50 GB", "size"]) {
    const found = find(question).slice(0, HITS_AT_A_GLANCE).map(({ url }) => url);
    assert.ok(!found.some((url) => url.startsWith("copying-caches")), found.join(", "));
  }
});

Deno.test("docs site: an excerpt has whole words, and no rule of a table", () => {
  const site = ownSite();
  const texts = [...pageOf(site, "sections.js").matchAll(/"text":"((?:[^"\\]|\\.)*)"/g)]
    .map(([, text]) => ` ${JSON.parse(`"${text}"`)} `.replaceAll(/\s+/g, " "));
  // A section may have no text.
  texts.push("  ");
  const find = searchOf(site);
  for (const question of [...Object.keys(QUESTIONS), ...Object.keys(FIRST_ANSWERS), "lock"]) {
    for (const { excerpt } of find(question)) {
      assert.ok(
        texts.some((text) => text.includes(` ${excerpt.replaceAll(/\s+/g, " ")} `)),
        excerpt,
      );
      assert.doesNotMatch(excerpt, /--- ---/);
    }
  }
});

Deno.test("docs site: a title with the word comes before a text with it", () => {
  const clients = "# Clients\n\n## Rest\n\nThe key.\n\n## The key, and more\n\nText.\n";
  const find = searchOf(siteWith({ ...OWN_SEARCH, "docs/clients.md": clients }));
  assert.deepEqual(Array.from(find("key"), ({ url }) => url), [
    "clients.html#the-key-and-more",
    "clients.html#rest",
  ]);
  assert.deepEqual(find("zebra").length, 0);
});

Deno.test("docs site: a search shows the text of a fence, and none of its attributes", () => {
  const clients = '# Clients\n\n## The key, and more\n\n```sh not-run="later"\nlarder pins\n```\n';
  const find = searchOf(siteWith({ ...OWN_SEARCH, "docs/clients.md": clients }));
  assert.match(find("pins")[0]?.excerpt ?? "", /larder pins/);
  assert.deepEqual(find("later").length, 0);
});

testUnless(
  programsMissing("chromium"),
  "docs site: a browser searches it from a folder, and says where nothing was found",
  async () => {
    using folder = tempFolder();
    const site = ownSite();
    for (const [name, text] of site.texts) Deno.writeTextFileSync(`${folder.path}/${name}`, text);
    await using browser = await openBrowser();
    const tab = await browser.tab();
    await tab.open(`file://${folder.path}/clients.html`);
    const shown = (words: string) =>
      tab.read<string>(`new Promise((resolve) => {
        const [field, list] = ["search input", "search ol"].map((one) => document.querySelector(one));
        new MutationObserver(() => resolve(list.firstChild.textContent))
          .observe(list, { childList: true });
        field.value = ${JSON.stringify(words)};
        field.dispatchEvent(new Event("input"));
      })`);
    assert.match(await shown("uninstall"), /^Installation: Uninstall/);
    assert.equal(await shown("zzqqxx"), "Nothing found");
  },
);

Deno.test("docs site: a link to a heading of another page works, and pictures come too", () => {
  const site = siteWith({
    "docs/clients.md": "# Clients\n\n## The key, and more\n\n## Clients\n\n![A page](page.png)\n",
  });
  assert.deepEqual(site.problems, []);
  assert.match(pageOf(site, "index.html"), /<a href="clients\.html#the-key-and-more">clients<\/a>/);
  assert.match(pageOf(site, "clients.html"), /<h2 id="the-key-and-more">The key, and more/);
  assert.match(pageOf(site, "clients.html"), /<h2 id="clients-1">/);
  assert.match(pageOf(site, "clients.html"), /<img src="page\.png"/);
  assert.deepEqual([...site.copied], ["docs/page.png"]);
});

Deno.test("docs site: a page of a subfolder lies beside the others, and needs a name of its own", () => {
  const forms = { "docs/design/forms.md": "# Forms\n\nFor [clients](../clients.md).\n" };
  const summary = `${SUMMARY}* [Forms](design/forms.md)\n`;
  const site = siteWith({ ...forms, "docs/SUMMARY.md": summary });
  assert.deepEqual(site.problems, []);
  assert.match(pageOf(site, "forms.html"), /<a href="clients\.html">clients<\/a>/);
  const wrong = { "docs/SUMMARY.md": `${SUMMARY}* [Other](design/clients.md)\n` };
  assert.deepEqual(siteWith({ ...forms, ...wrong }).problems, [
    "docs/design/forms.md is not in docs/SUMMARY.md",
    "docs/clients.md and docs/design/clients.md are both clients.html",
  ]);
});

Deno.test("docs site: a link to a source file leads to the repository, or nowhere", () => {
  const text = { "docs/clients.md": "# Clients\n\n[code](../src/nix/hash.ts)\n" };
  const url = "https://git.example/o/larder/blob/main/";
  const there = pageOf(siteWith(text, url), "clients.html");
  assert.ok(there.includes(`<a href="${url}src/nix/hash.ts">code</a>`));
  assert.match(pageOf(siteWith(text), "clients.html"), /<a >code<\/a>/);
});
