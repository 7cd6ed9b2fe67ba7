import { clock } from "../../src/runtime/current.ts";

/** Time between SIGTERM and SIGKILL. */
const STOP_MAX_MS = 10_000;

export interface Spawned {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment; default: that of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Served extends Spawned {
  /** Receives standard output: the log of larder. */
  readonly logFile: string;
}

/** The temporary folder and the processes of a run. Disposing removes them all. */
export class Workplace implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "larder-bench-" });
  readonly #children = new Set<Deno.ChildProcess>();
  #closing: Promise<void> | undefined;

  /** A new empty folder. */
  makeFolder(name: string): string {
    const path = `${this.folder}/${name}`;
    Deno.mkdirSync(path, { recursive: true });
    return path;
  }

  /** Starts a server. Deno cannot give a child a file: the shell does, and becomes the server. */
  start({ command, args, env, logFile }: Served): Deno.ChildProcess {
    return this.#track(
      new Deno.Command("sh", {
        args: ["-c", 'exec "$@" >>"$0"', logFile, command, ...args],
        ...(env === undefined ? {} : { env: { ...env }, clearEnv: true }),
        cwd: REPOSITORY,
        stdin: "null",
        stdout: "null",
        stderr: "inherit",
      }).spawn(),
    );
  }

  async stop(child: Deno.ChildProcess): Promise<void> {
    kill(child, "SIGTERM");
    if (await clock.within(child.status, STOP_MAX_MS) === undefined) kill(child, "SIGKILL");
    await child.status;
  }

  /** Runs a program to its end and returns its output. Throws if it fails. */
  async run({ command, args }: Spawned): Promise<string> {
    const child = this.#track(
      new Deno.Command(command, {
        args: [...args],
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn(),
    );
    const { success, stdout, stderr } = await child.output();
    const text = new TextDecoder().decode(stdout);
    if (success) return text;
    throw new Error(`Cannot run ${command}: ${new TextDecoder().decode(stderr).trim() || text}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => this.stop(child)));
    await Deno.remove(this.folder, { recursive: true });
  }

  #track(child: Deno.ChildProcess): Deno.ChildProcess {
    // A signal may arrive while a measure starts the next process.
    if (this.#closing !== undefined) kill(child, "SIGKILL");
    this.#children.add(child);
    child.status.then(() => this.#children.delete(child));
    return child;
  }
}

export const REPOSITORY = new URL("../../", import.meta.url).pathname;

function kill(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    child.kill(signal);
  } catch {
    // It has ended by itself.
  }
}
