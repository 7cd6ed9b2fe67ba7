import assert from "node:assert/strict";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { NixClient, nixTest } from "../../support/nix_client.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { tempFolder } from "../../support/temp_folder.ts";
import { TestCache } from "../../support/test_cache.ts";

const object = makeStoreObject({ name: "hello-2.12" });
const OUTPUT = "nixosConfigurations.host.config.system.build.toplevel";

/** Its derivation cannot be built anywhere. */
const FLAKE = `{
  outputs = _: {
    stored = "${object.storePath}";
    number = 5;
    function = x: x;
    set = { a = 1; };
    text = "hello";
    ${OUTPUT} = derivation {
      name = "nixos-system-host-24.11";
      system = "none";
      builder = "/none";
      outputs = [ "out" "man" ];
    };
  };
}`;

nixTest("larder warm: the output of a flake is evaluated, and not built", async () => {
  using nix = new NixClient();
  using folder = tempFolder();
  Deno.writeTextFileSync(`${folder.path}/flake.nix`, FLAKE);
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const installables = ["stored", OUTPUT].map((output) => `path:${folder.path}#${output}`);

  const { status, out, err } = await runLarder(["warm", ...installables, "--server", server.url], {
    nix: async (args) => ({ isSuccess: true, output: await nix.run("nix", args) }),
  });

  assert.equal(status, 1);
  const [stored, toplevel] = installables;
  assert.ok(out.startsWith(`${stored} is ${object.storePath}\n${toplevel} is /nix/store/`), out);
  assert.match(out, /^fetched 1 path: /m);
  assert.match(err, /not fetched:\n {2}[0-9a-z]{32}-nixos-system-host-24\.11: not found, /);
});

Deno.test("larder warm: without a nix, or if it fails, nothing is fetched", async () => {
  const absent = await runLarder(["warm", ".#hello"]);
  assert.equal(absent.status, 1);
  assert.match(absent.err, /Cannot evaluate \.#hello: there is no nix on this machine/);

  const nix = () => Promise.resolve({ isSuccess: false, output: "" });
  const failed = await runLarder(["warm", ".#hello"], { nix });
  assert.deepEqual([failed.status, failed.err], [
    1,
    "larder: Cannot evaluate .#hello: nix says above why\n",
  ]);

  const invalid = await runLarder(["warm", ".#hello", "./none"], { nix });
  assert.equal(invalid.status, 2, "before anything is evaluated");
});

nixTest(
  "larder plan: what is no derivation is said in a sentence, without our expression",
  async () => {
    using nix = new NixClient();
    using folder = tempFolder();
    Deno.writeTextFileSync(`${folder.path}/flake.nix`, FLAKE);
    const kinds = {
      number: "a number",
      function: "a function",
      set: "a set",
      text: "a text that is no store path",
    };
    for (const [output, kind] of Object.entries(kinds)) {
      const installable = `path:${folder.path}#${output}`;
      const { status, err } = await runLarder(["plan", installable], {
        nix: async (args) => ({ isSuccess: true, output: await nix.run("nix", args) }),
      });
      const advice = "expected a derivation or a store path, as for nix build";
      assert.deepEqual([status, err], [
        1,
        `larder: Cannot evaluate ${installable}: it is ${kind}; ${advice}\n`,
      ]);
    }
  },
);
