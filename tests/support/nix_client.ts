import { programsMissing, testUnless } from "./program.ts";
import { tempFolder } from "./temp_folder.ts";

/** Why tests with the real Nix cannot run here; empty when they can. */
export const NIX_UNAVAILABLE = programsMissing("nix", "nix-store");

/** Registers a test that needs the real Nix. */
export function nixTest(name: string, fn: () => Promise<void>): void {
  testUnless(NIX_UNAVAILABLE, name, fn);
}

export interface NixKey {
  /** A file, as Nix wants it. */
  readonly secretPath: string;
  readonly publicKey: string;
}

export interface CopyOptions {
  readonly compression: string;
  readonly level?: number;
  readonly key: NixKey;
  /** Whether to write a listing beside each narinfo. */
  readonly listings?: true;
}

export interface PullOptions {
  /** URLs of binary caches; several are tried in this order. */
  readonly from: readonly string[];
  /** Public keys: Nix refuses paths that none of them signed. */
  readonly trust: readonly string[];
}

/**
 * A Nix of its own: an empty store, no configuration but this, and no memory of a cache's paths.
 * Its store is a folder elsewhere, so that it needs neither root nor a daemon.
 */
export class NixClient implements Disposable {
  readonly #folder = tempFolder();
  readonly #caFile: string | undefined;
  /** Where the store is really; a store path goes behind it. */
  readonly root = `${this.#folder.path}/root`;

  /**
   * `caFile`: the authorities that it trusts. `netrc`: the text of its netrc file, if any.
   * `settings`: further lines of its nix.conf.
   */
  constructor(
    { caFile, netrc, settings = "" }: {
      readonly caFile?: string;
      readonly netrc?: string | undefined;
      readonly settings?: string;
    } = {},
  ) {
    this.#caFile = caFile;
    Deno.mkdirSync(`${this.root}/nix/store`, { recursive: true });
    Deno.mkdirSync(`${this.#folder.path}/conf`);
    const netrcFile = `${this.#folder.path}/conf/netrc`;
    if (netrc !== undefined) Deno.writeTextFileSync(netrcFile, netrc, { mode: 0o600 });
    const lines = `${CONFIGURATION}netrc-file = ${netrcFile}\n${settings}`;
    Deno.writeTextFileSync(`${this.#folder.path}/conf/nix.conf`, lines);
  }

  /** Makes a signing key by Nix itself. */
  async makeKey(name: string): Promise<NixKey> {
    const path = `${this.#folder.path}/${name}`;
    const files = [`${path}.secret`, `${path}.public`] as const;
    await this.run("nix-store", ["--generate-binary-cache-key", name, ...files]);
    return { secretPath: files[0], publicKey: (await Deno.readTextFile(files[1])).trim() };
  }

  /** Writes the closure of `path` as a binary cache into `folder`. */
  async copyTo(folder: string, path: string, options: CopyOptions): Promise<void> {
    const { compression, level, key, listings } = options;
    const settings = new URLSearchParams({ compression, "secret-key": key.secretPath });
    if (level !== undefined) settings.set("compression-level", String(level));
    if (listings) settings.set("write-nar-listing", "true");
    const words = ["--to", `file://${folder}?${decoded(settings)}`];
    await this.run("nix", ["copy", ...words, path]);
  }

  /** Copies the closure of `path` with `nix copy`. */
  async copyFrom(path: string, { from: [url = ""], trust }: PullOptions): Promise<void> {
    const words = ["--from", url, ...trusting(trust)];
    await this.run("nix", ["copy", ...words, path]);
  }

  /** Gets the closure of `path` as a build would: from the first substituter that has it. */
  async realise(path: string, { from, trust }: PullOptions): Promise<void> {
    const substituters = from.map((url, at) => `${url}?priority=${at + 1}`).join(" ");
    const words = ["--option", "substituters", substituters, ...trusting(trust)];
    await this.run("nix-store", [...words, "--realise", path]);
  }

  /** The closure of `path`, sorted. Throws when it is not in the store. */
  async closureOf(path: string): Promise<readonly string[]> {
    const text = await this.run("nix-store", ["-q", "-R", path]);
    return text.trim().split("\n").sort();
  }

  /** Makes the store know paths, in the words of `nix-store --dump-db`. */
  async loadDb(registration: string): Promise<void> {
    await this.run("nix-store", ["--load-db"], registration);
  }

  /** The NAR of the file or folder at `path` on disk. */
  async *dump(path: string): AsyncIterable<Uint8Array> {
    const command = this.#command("nix-store", ["--dump", path], "inherit");
    await using child = command.spawn();
    yield* child.stdout;
    const { success } = await child.status;
    if (!success) throw new Error(`Cannot dump ${path}`);
  }

  /** The program's standard output. Throws its standard error if it fails. */
  async run(program: string, args: readonly string[], stdin = ""): Promise<string> {
    await using child = this.#command(program, args).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(stdin)).catch(() => undefined);
    await writer.close().catch(() => undefined);
    const { success, stdout, stderr } = await child.output();
    if (success) return new TextDecoder().decode(stdout);
    const complaint = new TextDecoder().decode(stderr).trim();
    throw new Error(`Cannot run ${program} ${args.join(" ")}: ${complaint}`);
  }

  [Symbol.dispose](): void {
    makeWritable(this.root);
    this.#folder[Symbol.dispose]();
  }

  #command(
    program: string,
    args: readonly string[],
    stderr: "piped" | "inherit" = "piped",
  ): Deno.Command {
    const { path } = this.#folder;
    return new Deno.Command(program, {
      args: [...args],
      clearEnv: true,
      env: {
        PATH: Deno.env.get("PATH") ?? "",
        HOME: path,
        TMPDIR: path,
        NIX_REMOTE: `local?root=${this.root}`,
        NIX_CONF_DIR: `${path}/conf`,
        NIX_USER_CONF_FILES: "",
        NIX_STATE_DIR: `${path}/state`,
        NIX_LOG_DIR: `${path}/log`,
        ...(this.#caFile === undefined ? {} : { NIX_SSL_CERT_FILE: this.#caFile }),
        XDG_CACHE_HOME: `${path}/cache`,
        XDG_CONFIG_HOME: `${path}/config`,
        XDG_DATA_HOME: `${path}/data`,
        XDG_STATE_HOME: `${path}/xdg-state`,
      },
      stdin: stderr === "piped" ? "piped" : "null",
      stdout: "piped",
      stderr,
    });
  }
}

const CONFIGURATION = `
experimental-features = nix-command
build-users-group =
sandbox = false
substituters =
trusted-public-keys =
require-sigs = true
`;

function trusting(keys: readonly string[]): readonly string[] {
  return ["--option", "trusted-public-keys", keys.join(" ")];
}

/** Nix takes the values of a store URL's settings as they stand. */
function decoded(settings: URLSearchParams): string {
  return [...settings].map(([name, value]) => `${name}=${value}`).join("&");
}

/** Nix takes the right to write from its folders; without it they cannot be removed. */
function makeWritable(folder: string): void {
  Deno.chmodSync(folder, 0o755);
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) makeWritable(`${folder}/${name}`);
  }
}
