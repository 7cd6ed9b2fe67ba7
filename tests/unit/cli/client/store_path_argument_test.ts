import assert from "node:assert/strict";
import {
  type Links,
  readStorePathArgument,
  readStorePathArguments,
} from "../../../../src/cli/client/store_path_argument.ts";
import { problemsOf } from "../../../support/config_inputs.ts";

const HASH = "9l7x9qk0v78g2ns7xk46kqzyj8cxny0s";
const OTHER = "0".repeat(32);
const NAME = `${HASH}-hello-2.12`;
const PATH = `/nix/store/${NAME}`;

function links(targets: Readonly<Record<string, string>>, workingDirectory = "/home/ada"): Links {
  return { workingDirectory: () => workingDirectory, readLink: (path) => targets[path] };
}

for (
  const given of [HASH, `${HASH}.narinfo`, NAME, PATH, `${PATH}/`, `${PATH}/bin/hello`, `/${PATH}`]
) {
  Deno.test(`store path argument: ${given} is read without looking at this machine`, () => {
    const nowhere = { workingDirectory: () => "/", readLink: () => undefined };

    assert.equal(readStorePathArgument(given, nowhere)?.storePathHash, HASH);
  });
}

for (
  const [what, given, targets] of [
    ["a link", "./result", { "/home/ada/result": PATH }],
    ["a link, plainly named", "result", { "/home/ada/result": PATH }],
    ["a path below a link", "result/bin/hello", { "/home/ada/result": PATH }],
    ["a chain of links", "/run/current-system", {
      "/run/current-system": "../var/profiles/system",
      "/var/profiles/system": "system-42-link",
      "/var/profiles/system-42-link": PATH,
    }],
    ["a link into a path below the store's", "a", { "/home/ada/a": `${PATH}/bin/hello` }],
    ["a folder that is a link", "dev/out/result", {
      "/home/ada/dev": "/src",
      "/src/out/result": PATH,
    }],
    ["the way up behind a link", "dev/../result", {
      "/home/ada/dev": "/src/deep",
      "/src/result": PATH,
    }],
    ["a store directory that is a link itself", PATH, { "/nix": "/data/nix" }],
  ] as const
) {
  Deno.test(`store path argument: ${what} leads to its store path`, () => {
    assert.deepEqual(readStorePathArgument(given, links(targets)), {
      given,
      storePathHash: HASH,
      baseName: NAME,
    });
  });
}

Deno.test("store path argument: a path of the store is found from within the store", () => {
  const inStore = links({}, "/nix/store");

  assert.equal(readStorePathArgument(`./${NAME}/bin`, inStore)?.baseName, NAME);
});

for (
  const given of [
    "",
    "hello",
    "./result",
    "/",
    "/nix/store",
    "/nix/store/hello",
    "loop",
    "..",
    `${HASH}x`,
  ]
) {
  Deno.test(`store path argument: ${JSON.stringify(given)} is none`, () => {
    const looped = links({ "/home/ada/loop": "pool", "/home/ada/pool": "loop" });

    assert.equal(readStorePathArgument(given, looped), undefined);
  });
}

Deno.test("store path arguments: all that are none are named at once", () => {
  assert.deepEqual(problemsOf(() => readStorePathArguments(["a", HASH, "b\n"], links({}))), [
    '"a": expected a store path, its hash, or a link to one such as ./result',
    '"b\\n": expected a store path, its hash, or a link to one such as ./result',
  ]);
  assert.equal(problemsOf(() => readStorePathArguments([], links({}))).length, 1);
});

Deno.test("store path arguments: one path under two names is one", () => {
  const read = readStorePathArguments([HASH, OTHER, PATH], links({}));

  assert.deepEqual(read.map(({ given }) => given), [HASH, OTHER]);
});
