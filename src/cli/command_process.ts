import { visibleLines } from "../base/visible.ts";
import type { Inputs } from "../config/resolve.ts";
import type { StatusOutput } from "./client/status_line.ts";
import type { Build } from "./version.ts";
import type { Links } from "./client/store_path_argument.ts";

/** The process around a command: its arguments, environment, streams and files. */
export interface CommandProcess extends Omit<Inputs, "args">, Links, StatusOutput {
  /** What this larder was built from. */
  readonly build: () => Build;
  /** The path of larder's executable. */
  readonly executable: () => string;
  /** Writes to standard output, synchronously and in full. */
  readonly writeOut: (text: string) => void;
  /** Writes to standard error, synchronously and in full. */
  readonly writeError: (text: string) => void;
}

/** The real process. */
export function denoProcess(): CommandProcess {
  return {
    env: Deno.env.toObject(),
    readTextFile: (path) => Deno.readTextFileSync(path),
    fileExists,
    hostname: () => Deno.hostname(),
    build: () => ({
      commit: Deno.build.standalone ? builtCommit() : undefined,
      deno: Deno.version.deno,
      platform: Deno.build.target,
    }),
    executable: () => Deno.build.standalone ? Deno.execPath() : INSTALLED,
    workingDirectory: () => Deno.cwd(),
    readLink,
    errorColumns,
    isTerminal: () => Deno.stdout.isTerminal(),
    writeOut: (text) => writeAll(Deno.stdout, text),
    writeError: (text) => writeAll(Deno.stderr, text),
    clearErrorLine: () => writeAll(Deno.stderr, CLEAR_LINE),
  };
}

/** Where an executable usually goes, for a larder that runs from its source. */
const INSTALLED = "/usr/local/bin/larder";

/** The commit that scripts/compile.ts put into the executable. */
function builtCommit(): string {
  return Deno.readTextFileSync(new URL("../../dist/commit", import.meta.url)).trim();
}

const CLEAR_LINE = "\r\x1b[K";

/** The same with control characters made visible, for texts from servers, files and arguments. */
export function sanitizedProcess(process: CommandProcess): CommandProcess {
  return {
    ...process,
    writeOut: (text) => process.writeOut(visibleLines(text)),
    writeError: (text) => process.writeError(visibleLines(text)),
  };
}

/** False only if certainly absent: reading reports all other errors. */
function fileExists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory);
  }
}

/** An unreadable link is no link. */
function readLink(path: string): string | undefined {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return undefined;
  }
}

function errorColumns(): number | undefined {
  if (!Deno.stderr.isTerminal()) return undefined;
  try {
    return Deno.consoleSize().columns;
  } catch {
    // It checks standard input and output too, which may be closed.
    return TERMINAL_COLUMNS;
  }
}

const TERMINAL_COLUMNS = 80;

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  let rest: Uint8Array = new TextEncoder().encode(text);
  try {
    while (rest.length > 0) rest = rest.subarray(stream.writeSync(rest));
  } catch (error) {
    // The reader has left, as in `larder --help | head`.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}
