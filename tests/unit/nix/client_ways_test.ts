import assert from "node:assert/strict";
import { readFences } from "../../support/doc_steps.ts";
import { documentsIn } from "../../../scripts/docs/site.ts";
import { generalHelp } from "../../../src/cli/help.ts";
import { clientSettings, clientWays } from "../../../src/nix/client_ways.ts";

const URL = "http://cache.example:8501";
const KEYS = ["cache.example:abc=", "cache.nixos.org-1:def="];

/** The address and the key of the documents. */
const HERE = "http://nas:8501";
const KEY = `<the line of ${HERE}/pubkey>`;

Deno.test("client ways: each way has every setting of nix.conf", () => {
  const settings = clientSettings(URL, KEYS).map((line) => line.split(/ = (.*)/));
  for (const { id, lines } of clientWays({ url: URL, publicKeys: KEYS })) {
    for (const [name = "", value = ""] of settings) {
      assert.ok(lines.includes(name), `${id}: ${name}`);
      for (const part of value.split(" ")) assert.ok(lines.includes(part), `${id}: ${part}`);
    }
  }
});

Deno.test("client ways: each way says in a sentence what to do with its lines", () => {
  for (const { id, instruction } of clientWays({ url: URL, publicKeys: KEYS })) {
    assert.match(instruction, /^(?:Add to|Run in) .*\.$/, id);
  }
});

Deno.test("client ways: the lines of each language are right", () => {
  const ways = clientWays({ url: URL, publicKeys: KEYS });
  const linesOf = (id: string) => ways.find((way) => way.id === id)?.lines;
  assert.equal(linesOf("conf"), clientSettings(URL, KEYS).map((line) => `${line}\n`).join(""));
  assert.equal(
    linesOf("nixos"),
    [
      "nix.settings = {",
      `  extra-substituters = [ "${URL}" ];`,
      '  extra-trusted-public-keys = [ "cache.example:abc=" "cache.nixos.org-1:def=" ];',
      "  narinfo-cache-negative-ttl = 60;",
      "  connect-timeout = 3;",
      "};",
      "",
    ].join("\n"),
  );
  assert.match(linesOf("once") ?? "", /--option extra-substituters 'http:\/\/cache\.example:8501'/);
  assert.match(linesOf("ci") ?? "", /^env:\n {2}NIX_CONFIG: \|\n {4}extra-substituters = /);
  const keyless = clientWays({ url: URL, publicKeys: [] });
  assert.ok(keyless.every(({ lines }) => !lines.includes("public-keys")));
});

Deno.test("client ways: the README has the lines of the page", () => {
  const readme = Deno.readTextFileSync("README.md");
  for (const line of clientSettings(HERE, [KEY])) {
    assert.ok(readme.split("\n").includes(line), line);
  }
});

Deno.test("client ways: docs/clients.md has the lines of every tab of the page", () => {
  const blocks = readFences(Deno.readTextFileSync("docs/clients.md")).map(({ text }) => text);
  for (const { id, lines } of clientWays({ url: HERE, publicKeys: ["KEY"] })) {
    // The tests run the command, so it asks for the key itself.
    const told = lines.replace("'KEY'", `"$(curl --silent ${HERE}/pubkey)"`).replace("KEY", KEY);
    assert.ok(blocks.includes(told), id);
  }
});

Deno.test("client ways: an outage is forgotten in a minute wherever larder is a substituter", () => {
  for (
    const path of ["README.md", "docs/clients.md", "docs/observability.md", "docs/uploading.md"]
  ) {
    for (const { text } of readFences(Deno.readTextFileSync(path))) {
      if (!/^ *extra-substituters = /m.test(text)) continue;
      assert.match(text, /narinfo-cache-negative-ttl = 60/, path);
      assert.match(text, /connect-timeout = 3/, path);
    }
  }
});

Deno.test("client ways: no document replaces the substituters or keys of a client", () => {
  const pages = documentsIn("")
    .filter((path) => path.endsWith(".md"));
  const texts = ["README.md", ...pages].map((path) => [path, Deno.readTextFileSync(path)] as const);
  for (const [path, text] of [...texts, ["larder help", generalHelp([])] as const]) {
    const replacing = /(?<![\w-])(?:substituters|trusted-public-keys)(?: =| '?http)/;
    assert.doesNotMatch(text, replacing, path);
  }
});
