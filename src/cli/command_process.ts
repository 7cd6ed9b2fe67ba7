import { Buffer } from "node:buffer";
import type { LocalNetwork } from "../app/reachable_url.ts";
import { formatBytes } from "../base/format_units.ts";
import { namedFileExists, readNamedText } from "../base/named_file.ts";
import { visibleLines } from "../base/visible.ts";
import type { Inputs } from "../config/resolve.ts";
import type { SettingsInputs } from "../config/settings.ts";
import type { NixOutcome, RunNix } from "./client/installables.ts";
import type { StatusOutput } from "./client/status_line.ts";
import type { Build } from "./version.ts";
import type { ScreenSize } from "./status/status_screen.ts";
import type { Links } from "./client/store_path_argument.ts";

/** The process around a command: its arguments, environment, streams and files. */
export interface CommandProcess extends Omit<Inputs, "args">, Links, StatusOutput {
  /** The same reads beside this thread, and in time. */
  readonly namedFiles: Pick<SettingsInputs, "readTextFile" | "fileExists">;
  /** Origin of this larder's build. */
  readonly build: () => Build;
  /** The path of larder's executable. */
  readonly executable: () => string;
  /** Writes to standard output, synchronously and in full. */
  readonly writeOut: (text: string) => void;
  /** Writes to standard error, synchronously and in full. */
  readonly writeError: (text: string) => void;
  /** Gives the permission to run programs up, for good. */
  readonly giveUpRun: () => void;
  /** The network of this machine; default: the real one. */
  readonly network?: LocalNetwork;
  /** Runs this machine's Nix; `undefined` if there is none. */
  readonly nix: RunNix;
  /** The size of the terminal behind standard output; empty if there is none. */
  readonly screenSize: () => ScreenSize;
  /** Clears that terminal; ends a paragraph elsewhere. */
  readonly clearScreen: () => void;
  /** True once the reader of standard output has left, as in `larder status --watch | head`. */
  readonly isOutputClosed: () => boolean;
}

/** The real process. */
export function denoProcess(): CommandProcess {
  let isOutputClosed = false;
  const writeOut = (text: string) => {
    isOutputClosed = !writeAll(Deno.stdout, text) || isOutputClosed;
  };
  return {
    env: Deno.env.toObject(),
    readTextFile,
    fileExists,
    namedFiles: { readTextFile: readNamedText, fileExists: namedFileExists },
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
    giveUpRun: () => void Deno.permissions.revokeSync({ name: "run" }),
    nix: runNix,
    screenSize,
    clearScreen: () => writeOut(Deno.stdout.isTerminal() ? CLEAR_SCREEN : "\n"),
    isOutputClosed: () => isOutputClosed,
    isTerminal: () => Deno.stdout.isTerminal(),
    writeOut,
    writeError: (text) => void writeAll(Deno.stderr, text),
    clearErrorLine: () => void writeAll(Deno.stderr, CLEAR_LINE),
  };
}

/** Usual path of the executable, for a larder that runs from its source. */
const INSTALLED = "/usr/local/bin/larder";

/** The longest text of a file that a command reads whole. A device has no end. */
const TEXT_BYTES_MAX = 64 * 1024 * 1024;

/** The path may be a pipe, such as that of `<(command)`. */
function readTextFile(path: string): string {
  using file = Deno.openSync(path);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let left = TEXT_BYTES_MAX;;) {
    const piece = new Uint8Array(Math.min(1 << 16, left + 1));
    const got = file.readSync(piece);
    if (got === null) break;
    left -= got;
    if (left < 0) throw new Error(`it is larger than ${formatBytes(TEXT_BYTES_MAX)}`);
    pieces.push(piece.subarray(0, got));
  }
  return new TextDecoder().decode(Buffer.concat(pieces));
}

/** The commit that scripts/compile.ts put into the executable. */
function builtCommit(): string {
  return Deno.readTextFileSync(new URL("../../dist/commit", import.meta.url)).trim();
}

const CLEAR_LINE = "\r\x1b[K";
const CLEAR_SCREEN = "\x1b[H\x1b[J";

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

/** Runs `nix` from the `PATH`. Throws if larder was started without the permission. */
async function runNix(args: readonly string[]): Promise<NixOutcome | undefined> {
  try {
    const command = new Deno.Command("nix", { args: [...args], stderr: "inherit" });
    const { success, stdout } = await command.output();
    return { isSuccess: success, output: new TextDecoder().decode(stdout) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function screenSize(): ScreenSize {
  const nowhere = { columns: columnsOf(Deno.env.get("COLUMNS")), rows: undefined };
  if (!Deno.stdout.isTerminal()) return nowhere;
  try {
    const { columns, rows } = Deno.consoleSize();
    // Some terminals do not know their size.
    return { columns: columns || nowhere.columns, rows: rows || undefined };
  } catch {
    return nowhere;
  }
}

/** The width that people want in a pipe; `undefined`: none is given. */
export function columnsOf(given: string | undefined): number | undefined {
  const columns = Number(given ?? "");
  return Number.isSafeInteger(columns) && columns > 0 ? Math.max(columns, COLUMNS_MIN) : undefined;
}

/** No text fits fewer. */
const COLUMNS_MIN = 60;

/** False if the reader has left, as in `larder --help | head`. */
function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): boolean {
  let rest: Uint8Array = new TextEncoder().encode(text);
  try {
    while (rest.length > 0) rest = rest.subarray(stream.writeSync(rest));
    return true;
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    return false;
  }
}
