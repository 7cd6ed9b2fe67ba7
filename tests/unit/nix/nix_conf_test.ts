import assert from "node:assert/strict";
import fc from "fast-check";
import { listIn, readNixConf } from "../../../src/nix/nix_conf.ts";
import { checkProperty } from "../../support/property.ts";

const NIXOS = "https://cache.nixos.org/";

function settingsOf(files: Readonly<Record<string, string>>, ...texts: readonly string[]) {
  return readNixConf({
    texts: texts.map((text) => ({ text, folder: "/etc/nix" })),
    read: (path) => files[path],
  });
}

function listOf(name: string, ...texts: readonly string[]): readonly string[] {
  return listIn(settingsOf({}, ...texts), name);
}

Deno.test("nix.conf: a list has words, without comments, tabs and the line's end", () => {
  const text = "# substituters = no\nsubstituters =\thttp://a  http://b # http://c\r\n";
  assert.deepEqual(listOf("substituters", text), ["http://a", "http://b"]);
});

Deno.test("nix.conf: extra- adds to Nix's default, or to an earlier setting", () => {
  const extra = "extra-substituters = http://a";
  assert.deepEqual(listOf("substituters", extra), [NIXOS, "http://a"]);
  assert.deepEqual(listOf("substituters", "substituters = http://b", extra), [
    "http://b",
    "http://a",
  ]);
});

Deno.test("nix.conf: the last assignment wins, and may empty a list", () => {
  assert.deepEqual(listOf("substituters", "substituters = http://a\nsubstituters ="), []);
  assert.deepEqual(listOf("trusted-users", ""), ["root"]);
});

Deno.test("nix.conf: names of Nix 1 mean today's settings", () => {
  assert.deepEqual(listOf("substituters", "binary-caches = http://a"), ["http://a"]);
  assert.deepEqual(listOf("trusted-substituters", "trusted-binary-caches = http://a"), [
    "http://a",
  ]);
});

Deno.test("nix.conf: includes are relative to their file, and may be missing", () => {
  const files = {
    "/etc/nix/more/a.conf": "include b.conf",
    "/etc/nix/more/b.conf": "substituters = http://b",
  };
  const settings = settingsOf(files, "!include none.conf\ninclude more/a.conf");
  assert.deepEqual(listIn(settings, "substituters"), ["http://b"]);
});

Deno.test("nix.conf: a file that includes itself is read a few times", () => {
  const files = { "/etc/nix/nix.conf": "extra-x = 1\ninclude nix.conf" };
  assert.equal(listIn(settingsOf(files, "include nix.conf"), "x").length, 20);
});

checkProperty(
  "nix.conf: any text is read, and a line behind it counts",
  fc.property(fc.string({ unit: "binary" }), (text) => {
    assert.deepEqual(listOf("substituters", `${text}\nsubstituters = http://a`), ["http://a"]);
  }),
);
