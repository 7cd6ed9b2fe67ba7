import assert from "node:assert/strict";
import { hashOfBaseName, parseStorePath } from "../../src/nix/store_path.ts";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { eventually } from "../support/eventually.ts";
import { startLarder } from "../support/larder_process.ts";
import { NIX_UNAVAILABLE, NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, type NixObject } from "../support/nix_store_objects.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { runLarder } from "../support/run_larder.ts";
import { narFilesIn } from "../support/storage_look.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** A system of some shared and self-referring paths, none of which a client ever pulled. */
const SYSTEM: readonly NixObject[] = [
  { name: "libc", content: { bytes: 1_500_000 }, references: ["libc"] },
  { name: "zlib", content: { bytes: 200_000 }, references: ["libc"] },
  { name: "locale", content: "empty folder" },
  { name: "bash", references: ["libc", "zlib"] },
  { name: "kernel", content: { bytes: 700_000 } },
  { name: "etc", references: ["bash", "locale"] },
  { name: "nixos-system", references: ["etc", "kernel", "bash", "nixos-system"] },
];

nixTest("a pinned system is rebuilt by a real nix with no upstream at all", async () => {
  using folder = tempFolder();
  using maker = new NixClient();
  const key = await maker.makeKey("upstream-1");
  const system = await addObjects(maker, SYSTEM);
  await maker.copyTo(folder.path, system.top, { compression: "zstd", key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-upstream-dialer-timeout": "60s",
    "cache-upstream-response-header-timeout": "60s",
  });
  const env = { LARDER_SERVER: larder.url };
  // The root's narinfo alone: pinning imports no new path.
  const root = hashOfBaseName(parseStorePath(system.top));
  await (await fetch(`${larder.url}/${root}.narinfo`)).body?.cancel();

  const pinned = await runLarder(["pin", "--keep-complete", system.top], { env });
  assert.deepEqual([pinned.status, pinned.err], [0, ""]);
  await eventually("larder has fetched the closure", async () => {
    const { out } = await runLarder(["pins", "--json"], { env });
    return JSON.parse(out)[0].complete === true;
  });
  await upstream.stop();
  const verified = await runLarder(["verify", "--pins"], { env });
  assert.deepEqual([verified.status, verified.err], [0, ""]);
  assert.match(
    verified.out,
    /^nixos-system: complete and kept so, 7 paths\n1 of 1 pin complete, [\d.]+ MiB read\.\n$/,
  );
  const table = await runLarder(["pins"], { env });
  assert.match(table.out, new RegExp(`${root}  nixos-system +7  kept `));

  using client = new NixClient();
  await client.realise(system.top, { from: [larder.url], trust: [upstream.publicKey] });
  assert.deepEqual(await client.closureOf(system.top), system.paths);

  // One byte of one file is another, and nobody has the right one any more.
  const [name = "", size = 0] = [...narFilesIn(larder.storage)].toSorted(([, a], [, b]) =>
    b - a
  )[0] ??
    [];
  assert.ok(size > 1_000_000);
  using file = Deno.openSync(name, { read: true, write: true });
  file.seekSync(1_000, Deno.SeekMode.Start);
  file.writeSync(new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]));
  const broken = await runLarder(["verify", "--pins"], { env });
  assert.equal(broken.status, 1);
  assert.match(broken.out, /nixos-system: 1 path missing \(1 unknown\):\n {2}libc\n/);
  assert.match(broken.out, /0 of 1 pin complete, .* read/);
});

nixTest("a pinned system is incomplete from a loss until a real nix has pulled it", async () => {
  using folder = tempFolder();
  using maker = new NixClient();
  const key = await maker.makeKey("upstream-1");
  const system = await addObjects(maker, SYSTEM);
  await maker.copyTo(folder.path, system.top, { compression: "zstd", key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-upstream-dialer-timeout": "60s",
    "cache-upstream-response-header-timeout": "60s",
  });
  const env = { LARDER_SERVER: larder.url };
  const pull = async () => {
    using client = new NixClient();
    await client.realise(system.top, { from: [larder.url], trust: [upstream.publicKey] });
  };
  const statsOf = async () => await (await fetch(`${larder.url}/stats`)).json();
  const pinOf = async () => JSON.parse((await runLarder(["pins", "--json"], { env })).out)[0];
  await pull();
  await runLarder(["pin", system.top], { env });
  assert.equal((await runLarder(["verify", "--pins"], { env })).status, 0);
  // The second time small files come from memory, once they are read.
  await pull();
  const before = await pinOf();
  await eventually("it is counted", async () => (await statsOf()).pins.roots[0].stored === 7);
  const [lost = "", lostBytes = 0] = [...narFilesIn(larder.storage)]
    .toSorted(([, a], [, b]) => a - b)[0] ?? [];
  Deno.removeSync(lost);

  assert.equal((await runLarder(["verify", "--pins"], { env })).status, 1);
  const [shown] = (await statsOf()).pins.roots;
  assert.deepEqual([shown.stored, shown.missing], [6, 1]);
  const { stored, missing, ...now } = await pinOf();
  const expected = [6, 1, before.bytes - lostBytes, before.own_bytes - lostBytes];
  assert.deepEqual([stored, missing, now.bytes, now.own_bytes], expected);
  assert.match((await runLarder(["status"], { env })).out, /pin.* incomplete/i);
  assert.equal((await statsOf()).verdict.is_well, false);

  await pull();
  await eventually("all is well again", async () => (await statsOf()).verdict.is_well);
  const { complete, bytes } = await pinOf();
  assert.deepEqual([complete, bytes], [true, before.bytes]);
});

/** `lib` and its source are inputs of the build alone: nothing of them is in the output's closure. */
const EXPRESSION = `
let
  build = name: script: inputs: derivation (inputs // {
    inherit name;
    system = builtins.currentSystem;
    builder = "/bin/sh";
    args = [ (builtins.toFile "\${name}.sh" script) ];
  });
  lib = build "lib" "while read -r line; do echo \\"lib: $line\\"; done < $source > $out" {
    source = builtins.toFile "source" "one\\ntwo\\n";
  };
in build "system" "while read -r line; do echo \\"system: $line\\"; done < $lib > $out" { inherit lib; }
`;

/** Its store is elsewhere, so its builds see of this machine what it is told to show them. */
const BUILDER = { settings: "sandbox-paths = /bin /lib /lib64 /usr\n" };

testUnless(
  NIX_UNAVAILABLE || namespacesMissing(),
  "a pinned system is built anew by a real nix, whose inputs all come from larder alone",
  async () => {
    using folder = tempFolder();
    using maker = new NixClient(BUILDER);
    const key = await maker.makeKey("upstream-1");
    const words = ["eval", "--raw", "--impure", "--expr", `(${EXPRESSION}).drvPath`];
    const drv = await maker.run("nix", words);
    const out = (await maker.run("nix-store", ["--realise", drv])).trim();
    const all = await maker.run("nix-store", ["-q", "-R", "--include-outputs", drv]);
    const lib = all.trim().split("\n").find((path) => path.endsWith("-lib")) ?? "";
    // The .drv files and their sources, and the output of the input; not the system itself.
    const to = `file://${folder.path}?compression=zstd&secret-key=${key.secretPath}`;
    await maker.run("nix", ["copy", "--derivation", "--to", to, drv]);
    await maker.copyTo(folder.path, lib, { compression: "zstd", key });
    await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
    await using larder = await startLarder({
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "cache-upstream-dialer-timeout": "60s",
      "cache-upstream-response-header-timeout": "60s",
    });
    const env = { LARDER_SERVER: larder.url };
    for (const path of [drv, lib]) {
      const hash = hashOfBaseName(parseStorePath(path));
      await (await fetch(`${larder.url}/${hash}.narinfo`)).body?.cancel();
      const pinned = await runLarder(["pin", "--keep-complete", path], { env });
      assert.deepEqual([pinned.status, pinned.err], [0, ""]);
    }
    await eventually("larder has fetched the closures", async () => {
      const pins = JSON.parse((await runLarder(["pins", "--json"], { env })).out);
      return pins.every(({ complete }: { complete: boolean }) => complete);
    });
    await upstream.stop();

    using client = new NixClient(BUILDER);
    const pull = { from: [larder.url], trust: [upstream.publicKey] };
    await client.realise(drv, pull);
    const hashOf = (nix: NixClient) => nix.run("nix-store", ["-q", "--hash", out]);
    assert.equal(await hashOf(client), await hashOf(maker));
    const text = Deno.readTextFileSync(`${client.root}${out}`);
    assert.equal(text, "system: lib: one\nsystem: lib: two\n");
  },
);

/** Why no build can have its store elsewhere here; empty where it can. */
function namespacesMissing(): string {
  const missing = programsMissing("unshare");
  if (missing !== "") return missing;
  const { success } = new Deno.Command("unshare", {
    args: ["--user", "--map-root-user", "--mount", "true"],
    stderr: "null",
  }).outputSync();
  return success ? "" : "this machine gives no namespaces to a build";
}
