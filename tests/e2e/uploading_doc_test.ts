import assert from "node:assert/strict";
import { parse } from "yaml";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free_port.ts";
import { type LarderProcess, startLarder } from "../support/larder_process.ts";
import { NIX_UNAVAILABLE, NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects } from "../support/nix_store_objects.ts";
import { programMissing, testUnless } from "../support/program.ts";
import { tempFolder } from "../support/temp_folder.ts";

const PAGE = Deno.readTextFileSync(new URL("../../docs/uploading.md", import.meta.url));
const TOKEN = "a-write-token-of-some-length";
const HOST = "larder.example.org";

/** A Nix without experimental features, as it comes. */
const STOCK = "export NIX_CONFIG='experimental-features ='";

interface Job {
  readonly script: readonly string[];
}

interface Workflow {
  readonly jobs: { readonly build: { readonly steps: readonly { run?: string; name?: string }[] } };
}

nixTest("docs/uploading.md: the netrc file and the command of a laptop push", async () => {
  await pushes((at) => `${STOCK}\n${at(firstLine(block("## A laptop", "console")))}`);
});

nixTest("docs/uploading.md: the post-build hook pushes all outputs, and never fails", async () => {
  await pushes((at, top) =>
    [
      STOCK,
      `cat > hook <<'EOF'\n${at(block("## Post-build hook", "sh"))}EOF`,
      // No daemon runs here, so the test sets the variable; Nix 2.8.0 passes an empty one.
      'test -z "$(OUT_PATHS= sh hook 2>&1)"',
      `OUT_PATHS='/nix/store/${"0".repeat(32)}-none' sh hook`,
      `OUT_PATHS='${top}' sh hook`,
    ].join("\n")
  );
});

nixTest("docs/uploading.md: the steps of GitHub Actions push", async () => {
  const { jobs: { build: { steps } } } = parse(block("## GitHub Actions", "yaml")) as Workflow;
  const push = steps.find(({ name }) => name === "Push")?.run ?? "false";
  await pushes((at) => `export LARDER_TOKEN=${TOKEN} RUNNER_TEMP=$PWD\n${at(push)}`);
});

nixTest("docs/uploading.md: the script of GitLab CI pushes", async () => {
  const { push } = parse(block("## GitLab CI", "yaml")) as { readonly push: Job };
  const [, ...script] = push.script;
  await pushes((at) => `export LARDER_TOKEN=${TOKEN}\n${at(script.join("\n"))}`);
});

const NO_NGINX = NIX_UNAVAILABLE || programMissing("nginx");

testUnless(
  NO_NGINX,
  "docs/uploading.md: through nginx as shown a large NAR is pushed",
  async () => {
    using folder = tempFolder();
    const port = freePort();
    await using larder = await startLarder(FLAGS);
    const location = block("## Server", "nginx").replace("http://127.0.0.1:8501", larder.url);
    Deno.writeTextFileSync(
      `${folder.path}/nginx.conf`,
      `
    daemon off; pid ${folder.path}/pid; error_log ${folder.path}/log;
    events {}
    http { access_log off; client_body_temp_path ${folder.path}; proxy_temp_path ${folder.path};
      server { listen 127.0.0.1:${port}; ${location} } }`,
    );
    const args = ["-p", folder.path, "-c", `${folder.path}/nginx.conf`];
    await using nginx = new Deno.Command("nginx", { args, stderr: "null" }).spawn();
    await eventually("nginx listens", () => canConnect(port));
    using maker = new NixClient();
    const large = { name: "large", content: { bytes: 5_000_000 } };
    const { top } = await addObjects(maker, [large]);
    const to = `http://127.0.0.1:${port}/upload?compression=zstd`;
    await maker.run("nix", ["copy", "--netrc-file", netrcIn(folder.path), "--to", to, top]);
    await areStored(larder, [top]);
    nginx.kill("SIGTERM");
  },
);

const FLAGS = {
  "cache-upstream-url": "http://127.0.0.1:9",
  "cache-allow-put-verb": "true",
  "cache-put-token": `ci:${TOKEN}`,
};

/** A word list of a shell, with the page's host and files replaced by `at`. */
type Script = (at: (text: string) => string, top: string) => string;

/** Runs a script of the page in a folder with `result`; its closure is in the cache then. */
async function pushes(script: Script): Promise<void> {
  await using larder = await startLarder(FLAGS);
  using folder = tempFolder();
  using maker = new NixClient();
  const { top, paths } = await addObjects(maker, [
    { name: "leaf" },
    { name: "top", references: ["leaf"] },
  ]);
  Deno.symlinkSync(top, `${folder.path}/result`);
  const netrc = netrcIn(folder.path);
  const at = (text: string) =>
    text.replaceAll(/https?:\/\/larder\.example\.org(?::8501)?/g, larder.url)
      .replaceAll(HOST, "127.0.0.1")
      .replaceAll(/~\/\.config\/nix\/netrc|\/etc\/nix\/netrc/g, netrc);
  await maker.run("sh", ["-e", "-c", `cd ${folder.path}\n${script(at, top)}`]);
  await areStored(larder, paths);
}

async function areStored(larder: LarderProcess, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const answer = await fetch(`${larder.url}${narinfoPathOf(path)}`);
    assert.equal(answer.status, 200, path);
    await answer.text();
  }
}

/** The netrc file of the page. */
function netrcIn(folder: string): string {
  const path = `${folder}/netrc-of-the-page`;
  const text = block("## netrc", "").replace(HOST, "127.0.0.1").replace("TOKEN", TOKEN);
  Deno.writeTextFileSync(path, text);
  return path;
}

function narinfoPathOf(path: string): string {
  return `/${path.slice("/nix/store/".length, "/nix/store/".length + 32)}.narinfo`;
}

/** The first code block below a heading, in this language. */
function block(heading: string, language: string): string {
  const section = PAGE.slice(PAGE.indexOf(`${heading}\n`));
  const start = section.indexOf(`\`\`\`${language}\n`) + language.length + 4;
  return section.slice(start, section.indexOf("```", start));
}

/** A command of a console, over several lines. */
function firstLine(console: string): string {
  return console.replace(/^\$ /, "");
}

async function canConnect(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}
