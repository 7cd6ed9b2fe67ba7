import assert from "node:assert/strict";
import { clientSettings } from "../../../src/nix/client_settings.ts";
import { clientWays } from "../../../src/nix/client_ways.ts";

const URL = "http://cache.example:8501";
const KEYS = ["cache.example:abc=", "cache.nixos.org-1:def="];

Deno.test("client ways: each way has every setting of nix.conf", () => {
  const settings = clientSettings(URL, KEYS).map((line) => line.split(/ = (.*)/));
  for (const { id, lines } of clientWays({ url: URL, publicKeys: KEYS })) {
    for (const [name = "", value = ""] of settings) {
      assert.ok(lines.includes(name), `${id}: ${name}`);
      for (const part of value.split(" ")) assert.ok(lines.includes(part), `${id}: ${part}`);
    }
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
  const key = "<the line of http://localhost:8501/pubkey>";
  for (const line of clientSettings("http://localhost:8501", [key])) {
    assert.ok(readme.split("\n").includes(line), line);
  }
});
