import { CODE_ROOT, writePrograms } from "./doc_programs.ts";
import type { DocWorld } from "./doc_world.ts";
import { freePort } from "./free_port.ts";
import { NixClient } from "./nix_client.ts";
import { storePathOf } from "./nix_store_objects.ts";
import { tempFolder } from "./temp_folder.ts";

/** The cache of the Deno that runs the tests: another home would fetch all packages again. */
const DENO_FOLDER = Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`;

/** The write token of the documents. */
const TOKEN = "a-write-token-of-some-length";

/** Folders of a machine, which the sandbox has inside; also in `file:///media/stick`. */
const FOLDERS_REGEXP = /(?<=^|[\s"'=>(]|file:\/\/)\/(etc|var|run|media|mnt|tmp|usr\/local)\//gm;

/**
 * A machine for the commands of a page: a folder with a clone, a Nix of its own, and a larder.
 * A stand-in takes the place of every upstream. Addresses, keys and paths of the page become its
 * own.
 */
export class DocSandbox implements AsyncDisposable {
  readonly nix: NixClient;
  /** The folder that stands for `/`. */
  readonly root: string;
  /** Where the commands run. */
  readonly home: string;
  readonly port = freePort();
  readonly #prometheusPort = freePort();
  readonly #owned = new DisposableStack();
  readonly #world: DocWorld;
  #hasResult = false;

  constructor(world: DocWorld) {
    this.#world = world;
    this.root = this.#owned.use(tempFolder()).path;
    this.home = `${this.root}/home`;
    const folders = [
      "bin",
      "etc/larder",
      "etc/nix",
      "etc/systemd/system",
      "media",
      "mnt",
      "run",
      "tmp",
      "var/lib",
    ];
    for (const folder of [...folders, "usr/local/bin", "home/.config/nix", "home/scripts"]) {
      Deno.mkdirSync(`${this.root}/${folder}`, { recursive: true });
    }
    for (const name of ["docs", "deploy"]) {
      Deno.symlinkSync(`${CODE_ROOT}${name}`, `${this.home}/${name}`);
    }
    this.nix = this.#owned.use(
      new NixClient({
        settings: `trusted-public-keys = ${world.upstream.publicKey}\n` +
          "extra-experimental-features = flakes\n",
      }),
    );
    this.linkTo(storePathOf("hello-2.12.2"));
    Deno.writeTextFileSync(`${this.root}/etc/larder/config.toml`, 'log-level = "info"\n');
    writePrograms(this.root);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Makes `./result` lead to this store path. */
  linkTo(storePath: string): void {
    const path = `${this.home}/result`;
    if (this.#hasResult) Deno.removeSync(path);
    this.#hasResult = true;
    Deno.symlinkSync(storePath, path);
  }

  /** Writes a file of the page; `path` is the page's. */
  write(path: string, text: string): void {
    const place = this.localised(path).replace(/^~/, this.home);
    Deno.writeTextFileSync(place, this.localised(text), { mode: 0o755 });
  }

  /** Runs a script of a page. Throws its complaints. */
  async run(script: string): Promise<void> {
    const path = `${this.root}/script`;
    Deno.writeTextFileSync(path, `${this.#prelude()}\n${script}\n`);
    await this.nix.run("sh", [path]);
  }

  /** The text with the addresses, keys and paths of the sandbox. */
  localised(text: string): string {
    const { upstream, otherKey } = this.#world;
    const hello = storePathOf("hello-2.12.2");
    // The sandbox lies in /tmp itself: its own paths come in last.
    return text
      .replaceAll(/https:\/\/(?:cache\.nixos\.org|cache\.example\.org)/g, upstream.url)
      .replaceAll(
        "https://nix-community.cachix.org",
        upstream.url.replace("127.0.0.1", "localhost"),
      )
      .replaceAll(/\bnix-community\S+-1:[A-Za-z0-9+/]{43}=/g, otherKey)
      .replaceAll(/\bcache\.nixos\.org-1:[A-Za-z0-9+/]{43}=/g, upstream.publicKey)
      .replaceAll("localhost:9090", `127.0.0.1:${this.#prometheusPort}`)
      .replaceAll(/https?:\/\/(?:larder\.example\.org(?::8501)?|localhost:8501)/g, this.url)
      .replaceAll("localhost:8501", `127.0.0.1:${this.port}`)
      .replaceAll(/\blarder\.example\.org\b/g, "127.0.0.1")
      .replaceAll(/\bTOKEN\b/g, TOKEN)
      .replaceAll(/nixpkgs#hello|\/nix\/store\/\.\.\.-app/g, hello)
      .replaceAll("/var/lib/larder", "\0/home/larder-data")
      .replaceAll(FOLDERS_REGEXP, "\0/$1/")
      .replaceAll("\0", this.root);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run("stop-all").catch(() => undefined);
    this.#owned[Symbol.dispose]();
  }

  #prelude(): string {
    const { upstream } = this.#world;
    return `
      set -e
      unset XDG_STATE_HOME XDG_CONFIG_HOME
      export DENO_DIR='${DENO_FOLDER}'
      export HOME='${this.home}' PATH='${this.root}/bin':"$PATH" DOC_ROOT='${this.root}'
      export DOC_WORLD='${this.#world.folder}'
      export DOC_PROMETHEUS_PORT=${this.#prometheusPort}
      export SERVER_ADDR=127.0.0.1:${this.port} LARDER_SERVER='${this.url}'
      export CACHE_UPSTREAM_URL='${upstream.url}'
      export CACHE_UPSTREAM_PUBLIC_KEY='${upstream.publicKey}' CACHE_MAX_SIZE=20M
      export RUNNER_TEMP='${this.root}/tmp' LARDER_TOKEN=${TOKEN}
      cd '${this.home}'`;
  }
}
