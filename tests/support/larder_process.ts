import denoJson from "../../deno.json" with { type: "json" };
import type { Bytes } from "../../src/base/bytes.ts";
import { clock } from "../../src/runtime/current.ts";
import { sharedFlags } from "./shared_servers.ts";
import { tempFolder } from "./temp_folder.ts";
import { procText } from "./proc_text.ts";

/** By option name without dashes, e.g. `"cache-upstream-url"`; a list repeats the flag. */
export type LarderFlags = Readonly<Record<string, string | readonly string[]>>;

/**
 * Timeouts for upstreams that answer. After a third of the second one larder asks an upstream
 * beside another member, too. No answer is so late, however busy the machine is.
 */
export const LONG_TIMEOUTS: LarderFlags = {
  "cache-upstream-dialer-timeout": "30s",
  "cache-upstream-response-header-timeout": "30s",
};

/** One line of the log: level, time and message, then the facts. */
export interface LogLine {
  readonly level: string;
  readonly ts: string;
  readonly msg: string;
  readonly [fact: string]: unknown;
}

/** A start alone may take half a minute on a machine that is very busy. */
const LOG_LIMIT_MS = 120_000;
const LAST_LINES = 10;

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

/** It names the packages: those of the main of another larder, too. */
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

/** Those of the task `serve`: it must not need more. */
export const PERMISSIONS = denoJson.tasks.serve.command.split(" ")
  .filter((word) => word.startsWith("--allow-"));

/** The variables by which a program is found and started; none of larder's own options. */
const PASSED_ON = ["PATH", "HOME", "TMPDIR", "DENO_DIR", "XDG_CACHE_HOME"];

/**
 * Starts `larder serve` as a process of its own on a free port and resolves once it has started. It
 * is the executable that `LARDER_EXECUTABLE` names, else `main.ts`. Without the flag
 * `cache-storage-local` it gets a folder that goes with it. `through` is a program that runs the
 * words behind it, such as `nice`. `main` is that of another larder. Throws its output if it ends
 * before that.
 */
export async function startLarder(
  flags: LarderFlags,
  environment: Readonly<Record<string, string>> = {},
  through: readonly string[] = [],
  main?: string,
): Promise<LarderProcess> {
  const larder = new LarderProcess(flags, environment, through, main);
  try {
    await larder.start();
    return larder;
  } catch (error) {
    await larder[Symbol.asyncDispose]();
    throw error;
  }
}

/** A larder of its own that runs these words. */
export function larderProcess(words: readonly string[]): Deno.ChildProcess {
  const executable = Deno.env.get("LARDER_EXECUTABLE");
  const [program = "", ...args] = executable === undefined
    ? [Deno.execPath(), "run", "--cached-only", ...PERMISSIONS, MAIN, ...words]
    : [executable, ...words];
  return new Deno.Command(program, { args, stdin: "null", stdout: "piped", stderr: "piped" })
    .spawn();
}

/** A running larder. Disposing of it kills it. */
export class LarderProcess implements AsyncDisposable {
  readonly storage: string;
  /** Its log lines so far. */
  readonly lines: LogLine[] = [];
  readonly #ownFolder: (Disposable & { readonly path: string }) | undefined;
  readonly #child: Deno.ChildProcess;
  readonly #stderr: Promise<string>;
  readonly #read: Promise<void>;
  #more = Promise.withResolvers<void>();
  #over = false;
  #url = "";

  constructor(
    flags: LarderFlags,
    environment: Readonly<Record<string, string>> = {},
    through: readonly string[] = [],
    main?: string,
  ) {
    const given = flags["cache-storage-local"];
    this.#ownFolder = given === undefined ? tempFolder() : undefined;
    this.storage = this.#ownFolder?.path ?? String(given);
    const words = wordsOf({
      "server-addr": "127.0.0.1:0",
      // A test must not depend on the room of this machine's disk.
      "cache-max-size": "unlimited",
      // A test that takes a minute must not find its files in zstd. An older larder lacks the option.
      ...main === undefined && { "cache-recompress": "off" },
      ...sharedFlags(this.storage, flags),
      ...flags,
      "cache-storage-local": this.storage,
    });
    const executable = main === undefined ? Deno.env.get("LARDER_EXECUTABLE") : undefined;
    const larder = executable === undefined
      ? [
        Deno.execPath(),
        "run",
        "--cached-only",
        `--config=${CONFIG}`,
        ...PERMISSIONS,
        main ?? MAIN,
      ]
      : [executable];
    const [program = "", ...args] = [...through, ...larder, "serve", ...words];
    this.#child = new Deno.Command(program, { args, ...this.#surroundings(environment) }).spawn();
    this.#stderr = new Response(this.#child.stderr).text();
    this.#read = this.#readLines();
    // Checked when the process has ended.
    this.#read.catch(() => undefined);
  }

  /** Where it listens. */
  get url(): string {
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** The most memory that it has had resident so far (Linux). */
  get peakBytes(): number {
    return 1_024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(procText(`/proc/${this.pid}/status`))?.[1]);
  }

  /** Resolves when the process has ended and all that it said was read. */
  get ended(): Promise<Deno.CommandStatus> {
    return this.#end();
  }

  async start(): Promise<void> {
    const { url } = await this.logged("server started");
    // Tests may reach 127.0.0.1 alone.
    this.#url = String(url).replace("//localhost:", "//127.0.0.1:");
  }

  /**
   * Resolves with the first line of this message that `is` it, as soon as there is one. Throws
   * when larder ends without it, or does not come to it.
   */
  async logged(msg: string, is: (line: LogLine) => boolean = () => true): Promise<LogLine> {
    for (const untilMs = performance.now() + LOG_LIMIT_MS;;) {
      const line = this.lines.find((one) => one.msg === msg && is(one));
      if (line !== undefined) return line;
      if (this.#over) {
        throw new Error(`Cannot see "${msg}": larder has ended: ${await this.#stderr}`);
      }
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) {
        const last = this.lines.slice(-LAST_LINES).map((one) => JSON.stringify(one)).join("\n");
        throw new Error(`Cannot see "${msg}": ${LOG_LIMIT_MS} ms over, and the log says\n${last}`);
      }
      await clock.within(this.#more.promise, leftMs);
    }
  }

  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.kill("SIGKILL");
    } catch (error) {
      // It has ended by itself.
      if (!(error instanceof TypeError || error instanceof Deno.errors.NotFound)) throw error;
    }
    await this.#end();
    this.#ownFolder?.[Symbol.dispose]();
  }

  async #end(): Promise<Deno.CommandStatus> {
    const [status] = await Promise.all([this.#child.status, this.#stderr, this.#read]);
    return status;
  }

  #surroundings(environment: Readonly<Record<string, string>>): Omit<Deno.CommandOptions, "args"> {
    const passedOn = PASSED_ON.flatMap((name) => {
      const value = Deno.env.get(name);
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      clearEnv: true,
      // No configuration file of the user who runs the tests.
      env: { ...Object.fromEntries(passedOn), XDG_CONFIG_HOME: this.storage, ...environment },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    };
  }

  async #readLines(): Promise<void> {
    try {
      for await (const line of textLines(this.#child.stdout)) {
        this.lines.push(JSON.parse(line));
        this.#wake();
      }
    } finally {
      this.#over = true;
      this.#wake();
    }
  }

  #wake(): void {
    const { resolve } = this.#more;
    this.#more = Promise.withResolvers();
    resolve();
  }
}

function wordsOf(flags: LarderFlags): string[] {
  return Object.entries(flags).flatMap(([name, given]) =>
    [given].flat().map((value) => `--${name}=${value}`)
  );
}

/** Whole lines: a process that is killed may leave half a one. */
async function* textLines(bytes: ReadableStream<Bytes>): AsyncIterable<string> {
  let rest = "";
  for await (const text of bytes.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
