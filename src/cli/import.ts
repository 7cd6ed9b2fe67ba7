import type { CachePlace } from "../app/import_cache.ts";
import type { NcpsKey } from "../app/import_ncps.ts";
import { EXIT } from "../base/exit_codes.ts";
import { Failure, reasonOf } from "../base/failure.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import type { Handling } from "../cache/import/import_nar.ts";
import type { BrokenEntry } from "../cache/import/import_source.ts";
import type { ImportProgress, ImportWatcher } from "../cache/import/importer.ts";
import { ConfigError } from "../config/config_error.ts";
import type { Values } from "../config/kinds/option.ts";
import { boolean, path, text } from "../config/kinds/plain.ts";
import { upstreamUrl } from "../config/kinds/upstream_url.ts";
import type { Settings } from "../config/options.ts";
import { convertNcps } from "../config/render_ncps.ts";
import { folderOfUrl } from "./cache_folder_argument.ts";
import { reportFailures } from "./client/each.ts";
import { StatusLine } from "./client/status_line.ts";
import { readStorePathArguments } from "./client/store_path_argument.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { noOperands, parseArguments } from "./flags.ts";
import { serverSettings, splitServerArguments } from "./server_arguments.ts";

/** The flags of all kinds of imports. */
const IMPORT_FLAGS = {
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

export const IMPORT: Command = {
  name: "import",
  summary: "Bring another cache's paths into the storage",
  operands: "ncps DIR|ncps-config FILE|cache URL [PATH]...|nginx DIR",
  about:
    `It verifies every NAR by the NAR hash of its narinfo. It lists and skips broken entries, with
exit status 1. It works on the storage itself, also while a server runs on it, and while the other
cache serves. Run it again to continue where it ended, or to fetch paths that have come since.

  ncps DIR          DIR is the --cache-storage-local of an ncps. Its signatures, pins, last uses and
                    signing key come too.
  ncps-config FILE  prints the settings of an ncps as a configuration file of larder, with every
                    line explained. It reads the variables of its environment, too.
  cache URL         URL is file:///DIR or that of a binary cache. The closures of all PATH come, or
                    without any PATH all that is in DIR.
  nginx DIR         DIR is the folder of proxy_cache_path of an nginx in front of a binary cache.
`,
  examples: [
    [
      "larder import ncps /var/lib/ncps --cache-storage-local /var/lib/larder",
      "Copy the contents of an ncps, and leave it as it is",
    ],
    [
      "larder import ncps-config /etc/ncps/config.yaml > larder.toml",
      "Turn its settings into a configuration file of larder",
    ],
    ["larder import ncps /var/lib/ncps --link", "Take its files without a second copy on the disk"],
    [
      "larder import cache file:///media/stick",
      "Take everything that `larder export` has written there",
    ],
  ],
  ownFlags: IMPORT_FLAGS,
  flags: "server",
  run: importCommand,
};

type ImportKind = (inputs: ImportInputs, surroundings: CommandProcess) => Promise<number>;

/** Further kinds of caches are rows here. */
const KINDS: Readonly<Record<string, ImportKind>> = {
  "ncps": importNcpsFolder,
  "ncps-config": printNcpsConfig,
  "cache": importBinaryCache,
  "nginx": importNginxFolder,
};

async function importCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { own, server } = splitServerArguments(IMPORT_FLAGS, args);
  const parsed = parseArguments(IMPORT_FLAGS, { ...process, args: own });
  const { flags, rest: [kind = "", ...operands] } = parsed;
  const run = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (run === undefined) {
    const got = kind === "" ? "nothing" : JSON.stringify(kind);
    throw new ConfigError([`import: got ${got}, expected one of ${Object.keys(KINDS).join(", ")}`]);
  }
  return await run({ flags, operands, server }, process);
}

/** `larder import cache`. */
async function importBinaryCache(
  inputs: ImportInputs,
  process: CommandProcess,
): Promise<number> {
  const { operands: [given = "", ...paths], flags } = inputs;
  const place = placeOf(given);
  const givenPaths = [...paths, ...listed(flags["paths-from"], process)];
  if (givenPaths.length === 0 && place.kind === "url") {
    const expected = "PATH... or --paths-from FILE, as a cache behind HTTP lists nothing";
    throw new ConfigError([`import: got no paths, expected ${expected}`]);
  }
  const targets = givenPaths.length === 0 ? [] : readStorePathArguments(givenPaths, process);
  const roots = targets.map(({ storePathHash }) => storePathHash);
  const handling = handlingOf(flags);
  // Loaded here, so that help and errors are fast.
  const { importCache } = await import("../app/import_cache.ts");
  return await runImport(
    inputs,
    process,
    ({ settings, watcher, signal }) =>
      importCache(settings, { place, roots, handling, signal }, watcher),
  );
}

/** `larder import nginx`. */
async function importNginxFolder(
  inputs: ImportInputs,
  process: CommandProcess,
): Promise<number> {
  const folder = onlyOperand(inputs.operands, "the folder of proxy_cache_path");
  if (handlingOf(inputs.flags) !== "copy") {
    throw new ConfigError(["import: nginx: --link and --move: its files are no NAR files"]);
  }
  const { importNginx } = await import("../app/import_nginx.ts");
  return await runImport(
    inputs,
    process,
    ({ settings, watcher, signal }) => importNginx(settings, { folder, signal }, watcher),
  );
}

function placeOf(given: string): CachePlace {
  const path = folderOfUrl(given);
  if (path !== undefined) return { kind: "folder", path };
  try {
    return { kind: "url", url: upstreamUrl.parse(given).url };
  } catch {
    const got = given === "" ? "nothing" : JSON.stringify(upstreamUrl.redact?.(given) ?? given);
    throw new ConfigError([`import: got ${got}, expected file:///DIR or the URL of a cache`]);
  }
}

/** The store paths in a file, one in each line. */
function listed(path: string | undefined, process: CommandProcess): readonly string[] {
  if (path === undefined) return [];
  return fileText(path, process).split("\n").map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

/** `larder import ncps`. */
async function importNcpsFolder(
  inputs: ImportInputs,
  process: CommandProcess,
): Promise<number> {
  const folder = onlyOperand(inputs.operands, "the storage of an ncps");
  const handling = handlingOf(inputs.flags);
  // Loaded here, so that help and errors are fast.
  const { importNcps } = await import("../app/import_ncps.ts");
  const databaseUrl = inputs.flags.database;
  return await runImport(inputs, process, async ({ settings, watcher, signal }) => {
    const order = { folder, databaseUrl, handling, signal };
    const { progress, key } = await importNcps(settings, order, watcher);
    process.writeOut(keyLine(key));
    return progress;
  });
}

/** `larder import ncps-config`. */
async function printNcpsConfig(
  { operands, server }: ImportInputs,
  process: CommandProcess,
): Promise<number> {
  const path = onlyOperand(operands, "the configuration file of an ncps");
  noOperands(server);
  const text = fileText(path, process);
  const { toml, problems } = await convertNcps({ path, text, env: process.env });
  process.writeOut(toml);
  for (const problem of problems) process.writeError(`larder: ${problem}\n`);
  return problems.length === 0 ? EXIT.ok : EXIT.failed;
}

function keyLine({ outcome, path, publicKey }: NcpsKey): string {
  const place = path ?? "the database";
  if (outcome === "adopted") return `signing key of the ncps in ${place}: ${publicKey}\n`;
  if (outcome === "none") {
    return "the ncps has no key in its database: give its file with --cache-secret-key-path\n";
  }
  const way = path === undefined
    ? "give its file with --cache-secret-key-path"
    : "remove that file and run it again";
  return `${place} holds another key, and stays: clients need ${publicKey} too, or ${way}\n`;
}

/** The arguments of an import, behind its kind. */
interface ImportInputs {
  readonly flags: Flags;
  readonly operands: readonly string[];
  /** The arguments for the settings. */
  readonly server: readonly string[];
}

/** Throws a ConfigError unless there is one operand. */
function onlyOperand([first, ...others]: readonly string[], expected: string): string {
  if (first !== undefined && others.length === 0) return first;
  const got = first === undefined ? "nothing" : JSON.stringify([first, ...others].join(" "));
  throw new ConfigError([`import: got ${got}, expected ${expected}`]);
}

/** Throws a ConfigError for flags that contradict each other. */
function handlingOf({ link, move, copy }: Flags): Handling {
  if (Number(link) + Number(move) + Number(copy) > 1) {
    throw new ConfigError(["--copy, --link, --move: expected only one"]);
  }
  if (link) return "link";
  return move ? "move" : "copy";
}

/** The text of a file that an argument names. */
function fileText(path: string, process: CommandProcess): string {
  try {
    return process.readTextFile(path);
  } catch (error) {
    throw new Failure("broken", `Cannot read ${path}: ${reasonOf(error)}`, {}, error);
  }
}

/** The settings, watcher and signal of an import. */
interface ImportWork {
  readonly settings: Settings;
  readonly watcher: ImportWatcher;
  readonly signal: AbortSignal;
}

/** Runs an import with its progress, and reports its outcome. Ctrl-C ends it early. */
async function runImport(
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
  const withoutNames = last?.withoutNames ?? 0;
  if (withoutNames > 0) {
    const paths = counted(withoutNames, "path");
    const remedy = "give the key of the larder that wrote them with --cache-upstream-public-key";
    process.writeError(
      `larder: no trusted key has signed the former names of ${paths}: ${remedy}\n`,
    );
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
