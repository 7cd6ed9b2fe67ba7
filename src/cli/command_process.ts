import { visibleLines } from "../base/visible.ts";
import type { Inputs } from "../config/resolve.ts";
import type { StatusHost } from "./client/status_line.ts";
import type { Links } from "./client/store_path_argument.ts";

/** What a command may ask of the process that it runs in. */
export interface Host extends Omit<Inputs, "args">, Links, StatusHost {
  /** Text for standard output; all of it is out when this returns. */
  readonly writeOut: (text: string) => void;
  /** Text for standard error; all of it is out when this returns. */
  readonly writeError: (text: string) => void;
}

/** The real process. */
export function denoHost(): Host {
  return {
    env: Deno.env.toObject(),
    readTextFile: (path) => Deno.readTextFileSync(path),
    fileExists,
    hostname: () => Deno.hostname(),
    workingDirectory: () => Deno.cwd(),
    readLink,
    errorColumns,
    isTerminal: () => Deno.stdout.isTerminal(),
    writeOut: (text) => writeAll(Deno.stdout, text),
    writeError: (text) => writeAll(Deno.stderr, text),
    clearErrorLine: () => writeAll(Deno.stderr, CLEAR_LINE),
  };
}

const CLEAR_LINE = "\r\x1b[K";

/** The same, for texts that servers, files and arguments have a part in. */
export function harmlessHost(host: Host): Host {
  return {
    ...host,
    writeOut: (text) => host.writeOut(visibleLines(text)),
    writeError: (text) => host.writeError(visibleLines(text)),
  };
}

/** Only "certainly absent" is `false`: whatever cannot be looked at fails when it is read. */
function fileExists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory);
  }
}

/** What cannot be looked at is not followed. */
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
    // It asks standard input and output too, which may be none.
    return TERMINAL_COLUMNS;
  }
}

const TERMINAL_COLUMNS = 80;

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  let rest: Uint8Array = new TextEncoder().encode(text);
  try {
    while (rest.length > 0) rest = rest.subarray(stream.writeSync(rest));
  } catch (error) {
    // The reader has seen enough, as in `larder --help | head`.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}
