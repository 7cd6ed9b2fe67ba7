import assert from "node:assert/strict";
import { parse } from "yaml";
import { type Fence, readFences } from "../support/doc_steps.ts";
import { CODE_ROOT } from "../support/doc_programs.ts";
import { DOC_PROGRAMS_MISSING } from "../support/doc_programs_missing.ts";
import { DocSandbox } from "../support/doc_sandbox.ts";
import { DocWorld } from "../support/doc_world.ts";
import { addObjects } from "../support/nix_store_objects.ts";
import { testUnless } from "../support/program.ts";

const PAGE = Deno.readTextFileSync(`${CODE_ROOT}docs/rolling-pins.md`);
const UPLOADING = Deno.readTextFileSync(`${CODE_ROOT}docs/uploading.md`);

/** A Nix without experimental features, as it comes; the daemon's netrc; and a rebuild in name. */
const MACHINE = `export NIX_CONFIG='experimental-features ='
  cp ~/.config/nix/netrc /etc/nix/netrc
  printf '#!/bin/sh\\ntest "$1" = switch\\n' >/usr/local/bin/nixos-rebuild
  chmod +x /usr/local/bin/nixos-rebuild
  export PATH=/usr/local/bin/:"$PATH"`;

/** Versions of a machine, or of a branch. */
const NAMES = ["one", "two", "three", "four"];

type Step = { readonly name: string; readonly run: string };

docTest("docs/rolling-pins.md: the script of NixOS keeps the last three systems", async (at) => {
  for (const path of at.paths) {
    at.lead("run/current-system", path);
    await at.run("/usr/local/bin/rebuild --flake .#host");
  }
  assert.deepEqual(await at.names(), [{ name: `host/${at.machine}`, roots: at.newest(3) }]);
});

docTest("docs/rolling-pins.md: the post-build hook keeps outputs, and never fails", async (at) => {
  const none = `/nix/store/${"0".repeat(32)}-none`;
  await at.run(`test -z "$(OUT_PATHS= /etc/nix/keep-in-larder 2>&1)"
    OUT_PATHS='${none}' /etc/nix/keep-in-larder
    OUT_PATHS='${at.paths.slice(0, 3).join(" ")}' /etc/nix/keep-in-larder
    OUT_PATHS='${at.paths[3]}' /etc/nix/keep-in-larder`);
  assert.deepEqual(await at.names(), [{ name: `builds/${at.machine}`, roots: at.newest(4) }]);
});

docTest("docs/rolling-pins.md: the steps of CI keep a branch's results, and end it", async (at) => {
  const steps = parse(at.block("github.ref_name").text) as readonly Step[];
  const [keep = "", forget = ""] = ["Keep", "Forget"].map((name) =>
    steps.find((step) => step.name === name)?.run ?? "false"
  );
  for (const path of at.paths) {
    at.lead("home/result", path);
    await at.run(`${at.push}\nBRANCH=main\n${keep}`);
  }
  const [main, ...others] = await at.names();
  assert.deepEqual(others, []);
  assert.match(main?.name ?? "", /^ci\/branch-main-\d+$/);
  assert.deepEqual(main?.roots, at.newest(4));
  // All of them are branches to git; the first three differ in what a name may not have.
  const branches = ["fix/#12", "fix/@12", "fix--12", "_a/+b/é", "a/-%&'\"$x", "ü".repeat(110)];
  const quoted = (branch: string) => `BRANCH='${branch.replaceAll("'", "'\\''")}'`;
  for (const branch of branches) await at.run(`${quoted(branch)}\n${keep}`);
  assert.equal((await at.names()).length, branches.length + 1);
  for (const branch of branches) await at.run(`${quoted(branch)}\n${forget}`);
  assert.deepEqual(await at.names(), [main]);
  await assert.rejects(at.run(`BRANCH=main\nrm ~/result\n${keep}`), /error: 400/);
  await at.run(`BRANCH=main\n${forget}`);
  assert.deepEqual(await at.names(), []);
});

/** A machine with a larder that takes uploads, and store paths that only the machine has. */
interface Scene {
  readonly paths: readonly string[];
  readonly machine: string;
  /** The command of a laptop that pushes ./result. */
  readonly push: string;
  lead(link: string, path: string): void;
  run(script: string): Promise<void>;
  block(words: string): Fence;
  /** The hashes of the newest paths, the newest first. */
  newest(count: number): readonly string[];
  names(): Promise<readonly { name: string; roots: readonly string[] }[]>;
}

function docTest(name: string, test: (scene: Scene) => Promise<void>): void {
  testUnless(DOC_PROGRAMS_MISSING, name, async () => {
    await using world = await DocWorld.open([]);
    await using sandbox = new DocSandbox(world);
    for (const { file, text } of [...readFences(UPLOADING), ...readFences(PAGE)]) {
      if (file !== undefined) sandbox.write(file, text);
    }
    const commandWith = (words: string) => blockWith(UPLOADING, words).text.replace(/^\$ /, "");
    await sandbox.run(sandbox.localised(commandWith("larder serve")));
    const objects = NAMES.map((each) => ({ name: each, content: { bytes: 10_000 } }));
    const { paths } = await addObjects(sandbox.nix, objects);
    await test({
      paths,
      machine: Deno.hostname(),
      push: commandWith("--netrc-file ~/.config/nix/netrc"),
      lead(link, path) {
        const place = `${sandbox.root}/${link}`;
        if (exists(place)) Deno.removeSync(place);
        Deno.symlinkSync(path, place);
      },
      run: async (script) => await sandbox.run(sandbox.localised(`${MACHINE}\n${script}`)),
      block: (words) => blockWith(PAGE, words),
      newest: (count) => paths.slice(-count).reverse().map(hashOf),
      async names() {
        const names = await (await fetch(`${sandbox.url}/pins/names`)).json();
        return names.map(({ name, roots }: { name: string; roots: { root: string }[] }) => (
          { name, roots: roots.map(({ root }) => root) }
        ));
      },
    });
  });
}

function hashOf(path: string): string {
  return path.slice("/nix/store/".length, "/nix/store/".length + 32);
}

/** The first block of a page that has these words. */
function blockWith(page: string, words: string): Fence {
  const fence = readFences(page).find(({ text }) => text.includes(words));
  assert.ok(fence, `a block with ${words}`);
  return fence;
}

/** A link that leads nowhere is there, too. */
function exists(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false;
  }
}
