import { EXIT } from "../base/exit_codes.ts";
import { Failure, reasonOf } from "../base/failure.ts";
import type { BrokenEntry } from "../cache/import/import_source.ts";
import type { ImportProgress, ImportWatcher } from "../cache/import/importer.ts";
import type { Handling } from "../cache/import/import_nar.ts";
import { ConfigError } from "../config/config_error.ts";
import type { Values } from "../config/kinds/option.ts";
import { boolean, path, text } from "../config/kinds/plain.ts";
import type { Settings } from "../config/options.ts";
import { reportFailures } from "./client/each.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import { StatusLine } from "./client/status_line.ts";
import type { CommandProcess } from "./command_process.ts";
import { serverSettings } from "./server_arguments.ts";

/** The flags of all kinds of imports. */
export const IMPORT_FLAGS = {
  "database": {
    kind: { ...text, placeholder: "URL" },
    help: "Database of the ncps, as its --cache-database-url; default: beside its storage",
  },
  "paths-from": { kind: path, help: "File with a store path in each line, besides PATH..." },
  "copy": { kind: boolean, default: false, help: "Copy the NAR files (default)" },
  "link": { kind: boolean, default: false, help: "Share the NAR files: one file, two names" },
  "move": { kind: boolean, default: false, help: "Take the NAR files over, each after its check" },
} as const;

type Flags = Values<typeof IMPORT_FLAGS>;

/** The arguments of an import, behind its kind. */
export interface ImportInputs {
  readonly flags: Flags;
  readonly operands: readonly string[];
  /** The arguments for the settings. */
  readonly server: readonly string[];
}

/** Throws a ConfigError unless there is one operand. */
export function onlyOperand([first, ...others]: readonly string[], expected: string): string {
  if (first !== undefined && others.length === 0) return first;
  const got = first === undefined ? "nothing" : JSON.stringify([first, ...others].join(" "));
  throw new ConfigError([`import: got ${got}, expected ${expected}`]);
}

/** Throws a ConfigError for flags that contradict each other. */
export function handlingOf({ link, move, copy }: Flags): Handling {
  if (Number(link) + Number(move) + Number(copy) > 1) {
    throw new ConfigError(["--copy, --link, --move: expected only one"]);
  }
  if (link) return "link";
  return move ? "move" : "copy";
}

/** The text of a file that an argument names. */
export function fileText(path: string, process: CommandProcess): string {
  try {
    return process.readTextFile(path);
  } catch (error) {
    throw new Failure("broken", `Cannot read ${path}: ${reasonOf(error)}`, {}, error);
  }
}

/** The settings, watcher and signal of an import. */
export interface ImportWork {
  readonly settings: Settings;
  readonly watcher: ImportWatcher;
  readonly signal: AbortSignal;
}

/** Runs an import with its progress, and reports its outcome. Ctrl-C ends it early. */
export async function runImport(
  { server }: Pick<ImportInputs, "server">,
  process: CommandProcess,
  act: (work: ImportWork) => Promise<ImportProgress>,
): Promise<number> {
  const { settings } = await serverSettings(server, process);
  const broken: BrokenEntry[] = [];
  let last: ImportProgress | undefined;
  const watcher: ImportWatcher = {
    progress: (progress) => last = progress,
    broken: (entry) => void broken.push(entry),
  };
  const { stopWatch } = await import("../app/lifecycle.ts");
  using stopping = stopWatch();
  const { signal } = stopping;
  try {
    using _status = new StatusLine(process, () => progressLine(last, broken.length));
    last = await act({ settings, watcher, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    if (last !== undefined) process.writeOut(reportOf(last));
  }
  const failures = broken.map(({ name, problem }) => ({ name, reason: problem }));
  const status = reportFailures(failures, "not imported:", process.writeError);
  const withoutRoom = last?.withoutRoom ?? 0;
  if (withoutRoom > 0) {
    const paths = counted(withoutRoom, "path");
    const isSet = typeof settings["cache.max-size"] === "number";
    const remedy = isSet ? "raise --cache-max-size" : "make room on the disk";
    process.writeError(`larder: no room for ${paths}: ${remedy} and run it again\n`);
  }
  if (signal.aborted) process.writeError("larder: stopped; run it again to go on\n");
  return status !== EXIT.ok || withoutRoom > 0 || signal.aborted ? EXIT.failed : EXIT.ok;
}

function progressLine(last: ImportProgress | undefined, brokenCount: number): string {
  if (last === undefined) return "reading the other cache";
  const { entriesAll, entriesDone, storedBytes } = last;
  const all = entriesAll === undefined ? "" : `/${entriesAll.toLocaleString("en-US")}`;
  const done = `${entriesDone.toLocaleString("en-US")}${all} paths`;
  const broken = brokenCount === 0 ? "" : `  ${brokenCount} broken`;
  return `${done}  ${formatBytes(storedBytes)}${broken}`;
}

function reportOf({ stored, known, storedBytes }: ImportProgress): string {
  const here = known === 0 ? "" : `; ${known.toLocaleString("en-US")} were here already`;
  return `imported ${counted(stored, "path")} (${formatBytes(storedBytes)})${here}\n`;
}
