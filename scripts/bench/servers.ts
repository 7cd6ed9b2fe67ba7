import denoJson from "../../deno.json" with { type: "json" };
import { clock } from "../../src/runtime/current.ts";
import { freePort } from "../../tests/support/free_port.ts";
import { nginxConf, type NginxSite } from "./nginx_conf.ts";

/** The measured larder. */
export const LARDER = "larder";
/** Its twin: nginx as a caching proxy. */
export const PROXY = "nginx proxy_cache";
/** The cache that BENCH_PEER names. */
export const PEER = "peer";

/** A running server. */
export interface Server extends AsyncDisposable {
  readonly name: string;
  /** Without a final slash. */
  readonly url: string;
  /** Starts further processes of it. */
  readonly launcher: Launcher;
  /** The resident memory of its largest process, in bytes: now, and the most so far. */
  memory(): { readonly resident: number; readonly peak: number };
  /** Processor time so far: of all its processes, or of their threads of this name. */
  cpuSeconds(thread?: string): number;
}

/** Starts one of the servers with its data in `folder`; default: a new one. */
export interface Launcher {
  readonly name: string;
  /** Resolves with the first right answer. */
  launch(folder?: string): Promise<Server>;
}

/** The upstream of a measured cache. */
export interface Origin {
  readonly upstreamUrl: string;
  readonly publicKey: string;
}

export interface LarderParts extends Origin {
  /** A compiled larder; default: the sources. */
  readonly executable?: string | undefined;
  /** Further options, by their names without dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  /** The one core that it runs on; default: any. */
  readonly core?: number;
}

export const REPOSITORY = new URL("../../", import.meta.url).pathname;

/** The thread that answers requests. */
export const MAIN_THREAD = "main";

/** The variables that servers inherit: no option of larder is among them. */
const PASSED_ON = ["PATH", "HOME", "TMPDIR", "DENO_DIR", "XDG_CACHE_HOME"];
const START_MAX_MS = 20_000;
/** Time between SIGTERM and SIGKILL. */
const STOP_MAX_MS = 10_000;
const INTERRUPTED_STATUS = 130;
/** Linux counts in hundredths of a second, whatever the kernel's own clock. */
const TICKS_A_SECOND = 100;

/** The temporary folder and the processes of a run. Disposing removes them all. */
export class Workplace implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "larder-bench-" });
  readonly #children = new Set<Deno.ChildProcess>();
  #folders = 0;
  #closing: Promise<void> | undefined;

  constructor() {
    // Debian has nginx there; PATH of a user who is not root lacks it.
    Deno.env.set("PATH", `${Deno.env.get("PATH")}:/usr/sbin`);
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      Deno.addSignalListener(signal, async () => {
        await this[Symbol.asyncDispose]();
        Deno.exit(INTERRUPTED_STATUS);
      });
    }
  }

  /** A new empty folder. */
  makeFolder(name: string): string {
    const path = `${this.folder}/${name.replaceAll(/\W+/g, "-")}-${++this.#folders}`;
    Deno.mkdirSync(path);
    return path;
  }

  /** nginx with files, or as a caching proxy. */
  nginx(name: string, siteOf: (folder: string) => NginxSite): Launcher {
    return this.#launcher(name, (folder, port) => {
      const conf = `${folder}/nginx.conf`;
      Deno.writeTextFileSync(conf, nginxConf(folder, port, siteOf(folder)));
      return ["nginx", "-p", folder, "-c", conf, "-e", "stderr"];
    });
  }

  /** A larder with its defaults, but for the settings that one machine and one upstream need. */
  larder({ upstreamUrl, publicKey, executable, flags, core }: LarderParts): Launcher {
    // The command of the task, so that its permissions and engine flags are measured.
    const words = executable === undefined
      ? [Deno.execPath(), ...denoJson.tasks.serve.command.split(" ").slice(1)]
      : [Deno.realPathSync(executable), "serve"];
    const pinned = core === undefined ? [] : ["taskset", "--cpu-list", String(core)];
    return this.#launcher(LARDER, (folder, port) => {
      const all = {
        "cache-storage-local": folder,
        "server-addr": `127.0.0.1:${port}`,
        "cache-upstream-url": upstreamUrl,
        "cache-upstream-public-key": publicKey,
        "cache-hostname": "larder-bench",
        // Known misses must stay known during the measurement.
        "cache-negative-ttl": "1h",
        ...flags,
      };
      return [...pinned, ...words, ...Object.entries(all).map((pair) => `--${pair.join("=")}`)];
    });
  }

  /** Another pull-through cache: a program that gets folder, port, upstream and public key. */
  peer(program: string, { upstreamUrl, publicKey }: Origin): Launcher {
    return this.#launcher(PEER, (folder, port) => [
      ...[program, folder, String(port), upstreamUrl, publicKey],
    ]);
  }

  /** Runs a program to its end and returns its output. Throws if it fails. */
  async run(command: string, ...args: readonly string[]): Promise<string> {
    const child = this.#track(
      new Deno.Command(command, { args: [...args], stdout: "piped", stderr: "piped" }).spawn(),
    );
    const { success, stdout, stderr } = await child.output();
    const text = new TextDecoder().decode(stdout);
    if (success) return text;
    throw new Error(`Cannot run ${command}: ${new TextDecoder().decode(stderr).trim() || text}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    // A signal may come while it closes.
    return this.#closing ??= Promise.all([...this.#children].map(stop))
      .then(() => Deno.remove(this.folder, { recursive: true }));
  }

  #launcher(name: string, wordsFor: (folder: string, port: number) => string[]): Launcher {
    const launcher: Launcher = {
      name,
      launch: async (folder = this.makeFolder(name)) => {
        const port = freePort();
        const env = PASSED_ON.flatMap((name) => {
          const value = Deno.env.get(name);
          return value === undefined ? [] : [[name, value]];
        });
        // Deno cannot give a child a file: the shell does, and becomes the server.
        const child = this.#track(
          new Deno.Command("sh", {
            args: ["-c", 'exec "$@" >>"$0"', `${folder}.log`, ...wordsFor(folder, port)],
            // No file may change its form within a measure. An older larder overlooks the variable.
            env: { ...Object.fromEntries(env), CACHE_RECOMPRESS: "off" },
            clearEnv: true,
            cwd: REPOSITORY,
            stdout: "null",
          }).spawn(),
        );
        const url = `http://127.0.0.1:${port}`;
        await answered(name, url, child);
        return { name, url, launcher, ...watchOf(child) };
      },
    };
    return launcher;
  }

  #track(child: Deno.ChildProcess): Deno.ChildProcess {
    this.#children.add(child);
    child.status.then(() => this.#children.delete(child));
    return child;
  }
}

/** Waits until a new process answers `/nix-cache-info`. */
async function answered(name: string, url: string, child: Deno.ChildProcess): Promise<void> {
  let ended = false;
  child.status.then(() => ended = true);
  for (const startedAtMs = performance.now();;) {
    try {
      const response = await fetch(`${url}/nix-cache-info`);
      await response.bytes();
      if (response.ok) return;
    } catch {
      // It does not listen yet.
    }
    if (ended || performance.now() - startedAtMs > START_MAX_MS) {
      throw new Error(`Cannot start ${name}: it ${ended ? "ended at once" : "does not answer"}`);
    }
    await clock.pause(1);
  }
}

async function stop(child: Deno.ChildProcess): Promise<void> {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    try {
      child.kill(signal);
    } catch {
      // It has ended by itself.
    }
    if (await clock.within(child.status, STOP_MAX_MS) !== undefined) return;
  }
}

function watchOf(child: Deno.ChildProcess) {
  /** The process and its children. */
  const family = () => {
    const children = Deno.readTextFileSync(`/proc/${child.pid}/task/${child.pid}/children`);
    return [child.pid, ...children.split(" ").filter(Boolean).map(Number)];
  };
  const most = (field: string) => Math.max(...family().map((pid) => memoryOf(pid, field)));
  return {
    memory: () => ({ resident: most("VmRSS"), peak: most("VmHWM") }),
    cpuSeconds: (thread?: string) =>
      family().reduce((sum, pid) => sum + cpuSecondsOf(pid, thread), 0),
    [Symbol.asyncDispose]: () => stop(child),
  };
}

function memoryOf(pid: number, field: string): number {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return 1_024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
}

/** Of the process with its ended threads, or of its threads of this name. */
function cpuSecondsOf(pid: number, thread?: string): number {
  if (thread === undefined) return statOf(`/proc/${pid}/stat`)?.seconds ?? 0;
  return [...Deno.readDirSync(`/proc/${pid}/task`)].reduce((sum, { name: id }) => {
    const stat = statOf(`/proc/${pid}/task/${id}/stat`);
    const name = Number(id) === pid ? MAIN_THREAD : stat?.name;
    return name === thread ? sum + (stat?.seconds ?? 0) : sum;
  }, 0);
}

/** `undefined` for one that has ended. */
function statOf(path: string) {
  try {
    const stat = Deno.readTextFileSync(path);
    const end = stat.lastIndexOf(")");
    // Behind the name, which may hold spaces: user and system time are fields 14 and 15.
    const [user, system] = stat.slice(end + 2).split(" ").slice(11, 13).map(Number);
    const seconds = ((user ?? 0) + (system ?? 0)) / TICKS_A_SECOND;
    return { name: stat.slice(stat.indexOf("(") + 1, end), seconds };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
