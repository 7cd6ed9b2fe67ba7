import assert from "node:assert/strict";
import { parse } from "yaml";
import { type Fence, readFences } from "../support/doc_steps.ts";
import { CODE_ROOT } from "../support/doc_programs.ts";
import { DOC_PROGRAMS_MISSING } from "../support/doc_programs_missing.ts";
import { DocSandbox } from "../support/doc_sandbox.ts";
import { DocWorld } from "../support/doc_world.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free_port.ts";
import { addObjects } from "../support/nix_store_objects.ts";
import { testUnless } from "../support/program.ts";

const PAGE = Deno.readTextFileSync(`${CODE_ROOT}docs/uploading.md`);

/** A Nix without experimental features, as it comes. */
const STOCK = "export NIX_CONFIG='experimental-features ='";

interface Job {
  readonly script: readonly string[];
}

interface Workflow {
  readonly jobs: { readonly build: { readonly steps: readonly { run?: string; name?: string }[] } };
}

docTest("docs/uploading.md: the command of a laptop pushes with a stock Nix", async () => {
  const command = blockWith("--netrc-file ~/.config/nix/netrc").text.replace(/^\$ /, "");
  await pushes(() => `${STOCK}\n${command}`);
});

docTest("docs/uploading.md: the post-build hook pushes all outputs, and never fails", async () => {
  await pushes((top) =>
    [
      STOCK,
      "cp ~/.config/nix/netrc /etc/nix/netrc",
      // No daemon runs here, so the test sets the variable; Nix 2.8.0 passes an empty one.
      'test -z "$(OUT_PATHS= /etc/nix/upload-to-larder 2>&1)"',
      `OUT_PATHS='/nix/store/${"0".repeat(32)}-none' /etc/nix/upload-to-larder`,
      `OUT_PATHS='${top}' /etc/nix/upload-to-larder`,
    ].join("\n")
  );
});

docTest("docs/uploading.md: the steps of GitHub Actions push", async () => {
  const { jobs: { build: { steps } } } = parse(blockWith("runs-on:").text) as Workflow;
  const push = steps.find(({ name }) => name === "Push")?.run ?? "false";
  await pushes(() => push);
});

docTest("docs/uploading.md: the script of GitLab CI pushes", async () => {
  const { push } = parse(blockWith("image: nixos/nix").text) as { readonly push: Job };
  const [, ...script] = push.script;
  await pushes(() => script.join("\n"));
});

docTest("docs/reverse-proxy.md: through nginx as shown a large NAR is pushed", async () => {
  const port = freePort();
  await pushes(
    () =>
      `nix copy --netrc-file ~/.config/nix/netrc \\
      --to 'http://127.0.0.1:${port}/upload?compression=zstd' ./result`,
    async ({ root, url }) => {
      const page = Deno.readTextFileSync(`${CODE_ROOT}docs/reverse-proxy.md`);
      const [location = ""] = /^ {2}location \/ \{$.*?^ {2}\}$/ms.exec(page) ?? [];
      const placed = location.replace("http://127.0.0.1:8501", url);
      Deno.writeTextFileSync(
        `${root}/nginx.conf`,
        `
    daemon off; pid ${root}/pid; error_log ${root}/log;
    events {}
    http { access_log off; client_body_temp_path ${root}/tmp; proxy_temp_path ${root}/tmp;
      server { listen 127.0.0.1:${port}; ${placed} } }`,
      );
      const args = ["-p", root, "-c", `${root}/nginx.conf`];
      const nginx = new Deno.Command("nginx", { args, stderr: "null" }).spawn();
      await eventually("nginx listens", () => canConnect(port));
      return {
        [Symbol.asyncDispose]: async () => {
          nginx.kill("SIGTERM");
          await nginx.status;
        },
      };
    },
  );
});

function docTest(name: string, fn: () => Promise<void>): void {
  testUnless(DOC_PROGRAMS_MISSING, name, fn);
}

/** Runs a script in a sandbox with `result`; its closure is in the cache then. */
async function pushes(
  script: (top: string) => string,
  around?: (sandbox: DocSandbox) => Promise<AsyncDisposable>,
): Promise<void> {
  await using world = await DocWorld.open([]);
  await using sandbox = new DocSandbox(world);
  for (const { file, text } of readFences(PAGE)) {
    if (file !== undefined) sandbox.write(file, text);
  }
  await sandbox.run(sandbox.localised(blockWith("larder serve").text.replace(/^\$ /, "")));
  await using _ = await around?.(sandbox) ?? { [Symbol.asyncDispose]: async () => {} };
  const { top, paths } = await addObjects(sandbox.nix, [
    { name: "leaf" },
    { name: "top", references: ["leaf"], content: { bytes: 5_000_000 } },
  ]);
  sandbox.linkTo(top);
  await sandbox.run(`umask 077\n${sandbox.localised(script(top))}`);
  for (const path of paths) {
    const answer = await fetch(`${sandbox.url}/upload${narinfoPathOf(path)}`);
    assert.equal(answer.status, 200, path);
    await answer.text();
  }
}

function narinfoPathOf(path: string): string {
  return `/${path.slice("/nix/store/".length, "/nix/store/".length + 32)}.narinfo`;
}

/** The first block of the page that has these words. */
function blockWith(words: string): Fence {
  const fence = readFences(PAGE).find(({ text }) => text.includes(words));
  assert.ok(fence, `a block with ${words}`);
  return fence;
}

async function canConnect(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}
