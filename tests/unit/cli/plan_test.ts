import assert from "node:assert/strict";
import { NarRates } from "../../../src/upstream/pooled_upstream.ts";
import { summaryOf } from "../../../src/cli/plan.ts";
import type { PlannedEntry } from "../../../src/cli/client/closure_plan.ts";
import { hashOfBaseName, parseStorePath } from "../../../src/nix/store_path.ts";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { status as answering } from "../../support/faults.ts";
import { NixClient, nixTest } from "../../support/nix_client.ts";
import { PlayedTime } from "../../support/played_time.ts";
import { type LarderSurroundings, type Ran, runLarder } from "../../support/run_larder.ts";
import { chain, makeStoreObject, type StoreObject } from "../../support/store_object.ts";
import { tempFolder } from "../../support/temp_folder.ts";
import { TestCache } from "../../support/test_cache.ts";

const [leaf, middle, top] = chain(3) as [StoreObject, StoreObject, StoreObject];
const twins = ["twin-1", "twin-2"].map((name) =>
  makeStoreObject({ name, tree: { file: new Uint8Array(9) } })
);
const absent = makeStoreObject({ name: "absent-1.0" });

async function stage(objects: readonly StoreObject[]) {
  const stack = new AsyncDisposableStack();
  const upstream = stack.use(await fakeUpstream({ objects, stored: true }));
  const cache = stack.use(await TestCache.open({ upstreams: [upstream] }));
  const { url } = stack.use(cache.listen());
  const plan = (words: readonly string[], surroundings?: LarderSurroundings): Promise<Ran> =>
    runLarder(["plan", ...words, "--server", url], surroundings);
  return { upstream, cache, url, plan, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function pull(cache: TestCache, { storePathHash }: StoreObject): Promise<void> {
  await (await cache.get(await cache.narPath(storePathHash))).bytes();
  await cache.downloadsOver();
}

/** The text of a `.drv` file. */
function drv(
  outputs: Readonly<Record<string, string>>,
  inputs: Readonly<Record<string, readonly string[]>> = {},
): string {
  const quoted = (words: readonly string[]) => words.map((word) => `"${word}"`).join(",");
  const made = Object.entries(outputs).map(([name, path]) => `("${name}","${path}","","")`);
  const needed = Object.entries(inputs).map(([path, names]) => `("${path}",[${quoted(names)}])`);
  return `Derive([${made}],[${needed}],["/nix/store/${leaf.baseName}"],"x86_64-linux","/bin/sh",` +
    `["-c","echo \\"a\\""],[("name","x")])`;
}

function drvPath(name: string): string {
  return makeStoreObject({ name: `${name}.drv` }).storePath;
}

Deno.test("larder plan: says what is here, upstream and nowhere, with status 3 for the last", async () => {
  await using at = await stage([leaf, middle, top, ...twins]);
  await pull(at.cache, leaf);

  const all = await at.plan([top.storePath, ...twins.map(({ storePath }) => storePath)]);
  assert.deepEqual([all.status, all.err], [0, ""]);
  assert.match(
    all.out,
    /^of 5 paths 1 is here, 4 upstream \(\S+ \w+, no rate measured yet\), 0 nowhere\n/,
  );
  assert.ok(all.out.includes(`\nupstream:\n`), all.out);
  for (const { storePath } of [middle, top, ...twins]) {
    assert.match(all.out, new RegExp(`^  ${storePath}  \\S+ \\w+  ${at.upstream.url}$`, "m"));
  }
  assert.ok(!all.out.includes(leaf.baseName), "what is here is not listed");

  const some = await at.plan([leaf.storePath, absent.storePath]);
  assert.deepEqual([some.status, some.err], [3, ""]);
  assert.equal(
    some.out,
    `of 2 paths 1 is here, 0 upstream, 1 nowhere: no .drv is known to build it from\n\nnowhere:\n  ${absent.storePath}\n`,
  );
});

Deno.test("larder plan: a word that it cannot read, and none, get all that it expects", async () => {
  const expected = "expected a store path, its hash, or a link to one such as ./result; " +
    "a .drv file; or a flake's output such as nixpkgs#hello";
  for (const [words, what] of [[["hello"], '"hello":'], [[], "got nothing,"]] as const) {
    const { status, err } = await runLarder(["plan", ...words]);
    assert.equal(status, 2);
    assert.ok(err.replaceAll(/\s+/g, " ").includes(`${what} ${expected}`), err);
  }
});

Deno.test("larder plan --json: all paths, and the bytes of a shared NAR file once", async () => {
  await using at = await stage([leaf, ...twins]);
  await pull(at.cache, leaf);
  const words = [leaf, ...twins, absent].map(({ storePath }) => storePath);
  const { status, out } = await at.plan([...words, "--json"]);
  assert.equal(status, 3);
  const plan = JSON.parse(out);
  const narBytes = plan.list[1].bytes;
  assert.equal(plan.paths, 4);
  assert.equal(plan.here.paths, 1);
  assert.deepEqual(plan.upstream, {
    ...{ paths: 2, nars: 1, bytes: narBytes, seconds: null, unmeasured_bytes: narBytes },
  });
  assert.deepEqual([plan.nowhere, plan.unknown], [{ paths: 1, without_derivation: 1 }, {
    paths: 0,
  }]);
  assert.deepEqual(
    plan.list.map(({ name, state }: { name: string; state: string }) => `${name} ${state}`).sort(),
    ["absent-1.0 nowhere", "link-0 here", "twin-1 upstream", "twin-2 upstream"],
  );
  const [{ latency_ms, ...one }] = plan.upstreams;
  assert.equal(typeof latency_ms, "number", "narinfos were asked for");
  assert.deepEqual(one, { url: at.upstream.url, is_up: true, bytes_per_second: null });
});

Deno.test("larder plan --fetch: what is upstream is here afterwards, and nothing else moves", async () => {
  await using at = await stage([leaf, middle, top]);
  await pull(at.cache, leaf);
  const before = at.upstream.count(/^\/nar\//);
  const { status, out } = await at.plan([top.storePath, absent.storePath, "--fetch"]);
  assert.equal(status, 3);
  assert.match(out, /\nfetched 2 paths: \S+ \w+ in 2 NAR files\n$/);
  await at.cache.downloadsOver();
  assert.equal(at.upstream.count(/^\/nar\//), before + 2);
  const { status: then, out: again } = await at.plan([top.storePath, "--fetch"]);
  assert.deepEqual([then, again], [0, "of 3 paths 3 are here, 0 upstream, 0 nowhere\n"]);
});

Deno.test("larder plan: of a derivation that nobody has built, the paths that its build needs", async () => {
  const lib = makeStoreObject({ name: "lib-1.0", references: [leaf] });
  const dev = makeStoreObject({ name: "lib-1.0-dev", references: [lib] });
  const tool = makeStoreObject({ name: "tool-1.0" });
  const source = makeStoreObject({ name: "source-1.0" });
  const system = makeStoreObject({ name: "system-1" });
  const drvs = {
    system: drvPath("system-1"),
    lib: drvPath("lib-1.0"),
    tool: drvPath("tool-1.0"),
    source: drvPath("source-1.0"),
  };
  const files = {
    [drvs.system]: drv({ out: system.storePath }, {
      [drvs.lib]: ["dev", "out"],
      [drvs.tool]: ["out"],
    }),
    [drvs.lib]: drv({ dev: dev.storePath, out: lib.storePath }, { "/nix/store/none.drv": ["out"] }),
    [drvs.tool]: drv({ out: tool.storePath }, { [drvs.source]: ["out"] }),
    [drvs.source]: drv({ out: source.storePath }),
  };
  await using at = await stage([leaf, lib, dev]);

  const { status, out, err } = await at.plan([drvs.system, "--json"], { files });
  assert.deepEqual([status, err], [3, ""]);
  const plan = JSON.parse(out);
  const lines = plan.list.map((
    { name, state, derivation }: { name: string; state: string; derivation: string | null },
  ) => `${name} ${state} ${derivation}`);
  assert.deepEqual(lines.sort(), [
    "lib-1.0 upstream " + drvs.lib,
    "lib-1.0-dev upstream " + drvs.lib,
    "link-0 upstream null",
    "source-1.0 nowhere " + drvs.source,
    "system-1 nowhere " + drvs.system,
    "tool-1.0 nowhere " + drvs.tool,
  ]);
  assert.match((await at.plan([drvs.system], { files })).out, / 3 nowhere: they will be built\n/);
  assert.match((await at.plan([drvs.source], { files })).out, / 1 nowhere: it will be built\n/);
  assert.match(
    (await at.plan([drvs.system, absent.storePath], { files })).out,
    / 4 nowhere: 3 will be built, no \.drv is known for 1\n/,
  );

  const one = await at.plan([`${drvs.lib}^dev`, "--json"], { files });
  assert.equal(JSON.parse(one.out).list[0].name, "lib-1.0-dev");
  const unknown = await at.plan([`${drvs.lib}^doc`], { files });
  assert.deepEqual([unknown.status, unknown.err], [
    1,
    `larder: Cannot plan ${drvs.lib}: it has no output doc, but dev, out\n`,
  ]);
});

Deno.test("larder plan: bad arguments, files and upstreams get a sentence", async () => {
  await using at = await stage([leaf]);
  assert.equal((await at.plan([])).status, 2);
  assert.match((await at.plan(["hello"])).err, /"hello": expected a store path, its hash/);

  const path = drvPath("x-1.0");
  const missing = await at.plan([path]);
  const why = "it is not in this machine's store; there is no nix to ask for it";
  assert.deepEqual([missing.status, missing.err], [1, `larder: Cannot read ${path}: ${why}\n`]);
  const garbage = await at.plan([path], { files: { [path]: "Derive(nothing" } });
  assert.deepEqual([garbage.status, garbage.err], [
    1,
    'larder: Cannot read "Derive(nothing" as a derivation\n',
  ]);
  const floating = await at.plan([path], { files: { [path]: drv({ out: "" }) } });
  assert.match(floating.err, /Nix knows the paths of its outputs only once it has built them/);

  at.upstream.breakNarinfo(answering(500));
  const unknown = await at.plan([leaf.storePath]);
  assert.equal(unknown.status, 1, "an upstream that fails is no absence");
  assert.match(unknown.out, /0 nowhere, 1 unknown\n\nunknown: an upstream failed, or /);
});

Deno.test("larder plan: the time is that of the measured rate, one upstream after the other", async () => {
  using time = new PlayedTime();
  const rates = new NarRates();
  const more = rates.begin("https://a");
  await time.advance(2_000);
  more(4 << 20);
  const upstreams = ["https://a", "https://b"].map((url) => ({
    ...{ url, isUp: true, bytesPerSecond: rates.of(url), latencyMs: 160 },
  }));
  const entry = (nar: string, bytes: number, ...from: readonly string[]): PlannedEntry => ({
    ...{ hash: leaf.storePathHash, name: nar, state: "upstream", nar, bytes, upstreams: from },
    derivation: undefined,
  });
  const plan = (...entries: readonly PlannedEntry[]) => summaryOf(entries, upstreams).upstream;

  const measured = plan(
    entry("x", 20 << 20, "https://a", "https://b"),
    entry("x", 20 << 20, "https://a"),
  );
  assert.deepEqual([measured.seconds, measured.unmeasuredBytes, measured.nars], [10, 0, 1]);
  const many = Array.from({ length: 500 }, (_, at) => entry(`${at}`, 2_000, "https://a"));
  assert.equal(plan(...many).seconds, 5.5, "Nix waits for 16 answers at a time");
  const partly = plan(entry("x", 20 << 20, "https://a"), entry("y", 5, "https://b"));
  assert.deepEqual([partly.seconds, partly.unmeasuredBytes], [10, 5]);
  assert.equal(plan(entry("y", 5, "https://b")).seconds, undefined);
});

nixTest(
  "larder plan: a flake's output leads to its derivation, of which nothing is built",
  async () => {
    using nix = new NixClient();
    using folder = tempFolder();
    const made = (name: string, more = "") =>
      `derivation { name = "${name}"; system = "none"; builder = "/none"; ${more} }`;
    Deno.writeTextFileSync(
      `${folder.path}/flake.nix`,
      `{ outputs = _: rec {
      lib = ${made("lib-1.0", 'outputs = [ "out" "dev" ];')};
      system = ${made("system-1", "lib = lib.dev;")};
      stored = "${leaf.storePath}";
    }; }`,
    );
    await using at = await stage([leaf]);
    const words = ["system", "stored"].map((output) => `path:${folder.path}#${output}`);
    const { status, out, err } = await at.plan(words, {
      nix: async (args) => ({ isSuccess: true, output: await nix.run("nix", args) }),
    });
    assert.deepEqual([status, err], [3, ""]);
    assert.match(out, /^of 3 paths 0 are here, 1 upstream \(.*\), 2 nowhere: they will be built\n/);
    assert.match(out, /nowhere:\n {2}\S+-system-1\n {2}\S+-lib-1\.0-dev\n$/);
  },
);

nixTest("larder plan: a real nix would build and fetch the same, by its own dry run", async () => {
  using nix = new NixClient();
  const made = (name: string, more = "") =>
    `derivation { name = "${name}"; system = builtins.currentSystem; builder = "/bin/sh"; ${more} }`;
  const expression = `rec {
    lib = ${made("lib-1.0", 'outputs = [ "out" "dev" ];')};
    source = ${made("source-1.0")};
    tool = ${made("tool-1.0", "inherit source;")};
    unused = ${made("unused-1.0")};
    lost = ${made("lost-1.0", "inherit unused;")};
    system = ${made("system-1", "lib = lib.dev; inherit tool lost;")};
  }`;
  const instantiate = async (name: string) =>
    (await nix.run("nix-instantiate", ["--expr", expression, "-A", name])).trim();
  const built = async (name: string, references: readonly StoreObject[]) => {
    const path = await nix.run("nix", [
      "eval",
      "--raw",
      "--expr",
      `(${expression}).${name}.outPath`,
      "--impure",
    ]);
    const baseName = parseStorePath(path);
    const object = makeStoreObject({ name: name.replace(".", "-"), references });
    return { ...object, baseName, storePath: path, storePathHash: hashOfBaseName(baseName) };
  };
  const dev = await built("lib.dev", [leaf]);
  const source = await built("source", []);
  const lost = await built("lost", []);
  const system = await instantiate("system");
  await using at = await stage([leaf, dev, source, lost]);

  const { status, out } = await at.plan([system, "--json"], {
    nix: async (args) => ({ isSuccess: true, output: await nix.run("nix", args) }),
  });
  assert.equal(status, 3);
  const those = (state: string, field: "hash" | "derivation"): readonly string[] =>
    JSON.parse(out).list.filter((one: PlannedEntry) => one.state === state)
      .map((one: PlannedEntry) => one[field]).sort();
  const said = await nix.run("sh", [
    ...["-c", 'exec "$@" 2>&1', "sh", "nix-store", "--realise", "--dry-run", system],
    ...["--option", "substituters", at.url],
    ...["--option", "trusted-public-keys", at.upstream.publicKey],
  ]);
  const [toBuild = "", toFetch = ""] = said.split(/will be fetched/);
  const paths = (text: string) =>
    [...text.matchAll(/^ +\/nix\/store\/(\S+)/gm)].map(([, path = ""]) => path).sort();
  assert.deepEqual(
    those("nowhere", "derivation"),
    paths(toBuild).map((path) => `/nix/store/${path}`),
    said,
  );
  assert.deepEqual(
    those("upstream", "hash"),
    paths(toFetch).map((path) => path.slice(0, 32)),
    said,
  );
  assert.equal(paths(toFetch).length, 4);
});
