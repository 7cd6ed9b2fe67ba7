import type { CommandProcess } from "../../src/cli/command_process.ts";
import type { LocalNetwork } from "../../src/app/reachable_url.ts";
import type { RunNix } from "../../src/cli/client/installables.ts";
import { run } from "../../src/cli/run.ts";
import { inputsOf } from "./config_inputs.ts";

export interface LarderSurroundings {
  readonly env?: Readonly<Record<string, string>>;
  /** Content by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** The targets of symbolic links, by their path. */
  readonly links?: Readonly<Record<string, string>>;
  /** The path of the executable. */
  readonly executable?: string;
  readonly giveUpRun?: () => void;
  /** This machine's Nix; there is none without it. */
  readonly nix?: RunNix;
  readonly network?: LocalNetwork;
  /** Set where standard error is a terminal. */
  readonly columns?: number | undefined;
}

/** The output of a command, and its exit code. */
export interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** A command of over five seconds has such lines: of an import, an export, or a closure. */
const PROGRESS_REGEXP = /^(?:reading the other cache|[\d,]+(?:\/[\d,]+)? paths? {2}.*)\n/gm;

/** Its standard error without the lines of its progress. */
export function withoutProgress(err: string): string {
  return err.replace(PROGRESS_REGEXP, "");
}

/** Runs `larder` with these words, without a process, in the folder `/home/ada`. */
export async function runLarder(
  args: readonly string[],
  surroundings: LarderSurroundings = {},
): Promise<Ran> {
  const { env = {}, files = {}, links = {} } = surroundings;
  let out = "";
  let err = "";
  const { args: _, ...inputs } = inputsOf({ env, files });
  const host: CommandProcess = {
    ...inputs,
    namedFiles: inputs,
    writeOut: (text) => void (out += text),
    writeError: (text) => void (err += text),
    clearErrorLine: () => void (err += "\r\x1b[K"),
    build: () => ({ commit: "0123abc", deno: "2.6.8", platform: "x86_64-unknown-linux-gnu" }),
    executable: () => surroundings.executable ?? "/usr/local/bin/larder",
    workingDirectory: () => "/home/ada",
    readLink: (path) => links[path],
    errorColumns: () => surroundings.columns,
    giveUpRun: surroundings.giveUpRun ?? (() => undefined),
    ...surroundings.network === undefined ? {} : { network: surroundings.network },
    nix: surroundings.nix ?? (() => Promise.resolve(undefined)),
    screenSize: () => ({ columns: surroundings.columns, rows: undefined }),
    clearScreen: () => void (out += "\n"),
    isOutputClosed: () => false,
  };
  const status = await run(args, host);
  return { status, out, err };
}
