import assert from "node:assert/strict";
import { bare, checkClient } from "../../../../src/cli/doctor/client_check.ts";
import { findNixClient } from "../../../../src/cli/doctor/nix_client.ts";

const URL = "http://cache:8501";
const KEY = "cache-1:own";
const UPSTREAM = "up-1:key";
const SYSTEM = "/etc/nix/nix.conf";
const USER = "/home/ada/.config/nix/nix.conf";
const DAEMON = { "/nix/var/nix/daemon-socket/socket": "" };
const ALL = `substituters = ${URL}/\ntrusted-public-keys = ${KEY}`;

type Files = Readonly<Record<string, string>>;

function nixOf(files: Files, env: Files = {}) {
  return findNixClient({
    env: { HOME: "/home/ada", USER: "ada", ...env },
    readTextFile(path) {
      const text = files[path];
      if (text === undefined) throw new Error("No such file");
      return text;
    },
    fileExists: (path) => path in files,
  });
}

function linesOf(files: Files, env: Files = {}): readonly string[] {
  const findings = checkClient({
    nix: nixOf(files, env),
    url: URL,
    publicKey: KEY,
    upstreamKeys: [UPSTREAM],
    isLarder: (substituter) => bare(substituter) === URL,
  });
  return findings.map(({ subject, mark }) => `${subject.replace("nix.conf ", "")} ${mark}`);
}

for (
  const [what, files, expected] of [
    ["no Nix", {}, ["nix.conf not checked"]],
    ["another cache", { [SYSTEM]: "" }, ["nix.conf warning"]],
    ["this cache", { [SYSTEM]: ALL }, ["substituters ok", "keys ok"]],
    [
      "an earlier key of this cache",
      { [SYSTEM]: `${ALL.replace(KEY, "cache-1:former")} ${UPSTREAM}` },
      ["substituters ok", "keys failed"],
    ],
    [
      "the upstream's key alone",
      { [SYSTEM]: ALL.replace(KEY, UPSTREAM) },
      ["substituters ok", "keys warning"],
    ],
    ["no key of it", { [SYSTEM]: `substituters = ${URL}` }, ["substituters ok", "keys failed"]],
    [
      "no signatures at all",
      { [SYSTEM]: `${ALL}\nrequire-sigs = false` },
      ["substituters ok", "keys warning"],
    ],
    [
      "it for a user whom the daemon does not trust",
      { ...DAEMON, [SYSTEM]: `trusted-public-keys = ${KEY}`, [USER]: ALL },
      ["substituters failed", "keys ok", "user ok"],
    ],
    [
      "it for a user of a trusted group",
      {
        ...DAEMON,
        [SYSTEM]: "trusted-users = root @wheel",
        [USER]: ALL,
        "/etc/group": "wheel:x:10:bob,ada",
      },
      ["substituters ok", "keys ok", "user ok"],
    ],
    [
      "it as a trusted substituter",
      {
        ...DAEMON,
        [SYSTEM]: `trusted-substituters = ${URL}\ntrusted-public-keys = ${KEY}`,
        [USER]: ALL,
      },
      ["substituters ok", "keys ok", "user ok"],
    ],
  ] as const
) {
  Deno.test(`doctor: a client whose settings have ${what} is ${expected.join(", ")}`, () => {
    assert.deepEqual(linesOf(files), expected);
  });
}

Deno.test("doctor: NIX_CONFIG has the last word, and the user's first file before it", () => {
  const files = { [SYSTEM]: "", "/a.conf": ALL, "/b.conf": "substituters = http://other" };
  const named = { NIX_USER_CONF_FILES: "/a.conf:/b.conf" };
  assert.deepEqual(linesOf(files, named), ["substituters ok", "keys ok"]);
  const last = { ...named, NIX_CONFIG: "substituters = http://other" };
  assert.deepEqual(linesOf(files, last), ["nix.conf warning"]);
});

Deno.test("doctor: an untrusted user hears that Nix ignores --option substituters", () => {
  const files = { ...DAEMON, [SYSTEM]: ALL };
  const nix = nixOf(files);
  const isLarder = () => true;
  const facts = { nix, url: URL, publicKey: KEY, upstreamKeys: [], isLarder };
  assert.match(checkClient(facts).at(-1)?.fact ?? "", /not trusted: Nix ignores --option/);
});
