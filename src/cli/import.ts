import type { BrokenEntry } from "../cache/import/import_source.ts";
import type { ImportProgress, ImportWatcher } from "../cache/import/importer.ts";
import type { Handling } from "../cache/import/import_nar.ts";
import type { NcpsKey } from "../app/import_ncps.ts";
import { ConfigError } from "../config/config_error.ts";
import { boolean, text } from "../config/kinds/plain.ts";
import type { Values } from "../config/kinds/option.ts";
import { convertNcps } from "../config/render_ncps.ts";
import { readSettings } from "../config/settings.ts";
import { EXIT } from "../base/exit_codes.ts";
import { Failure, reasonOf } from "../base/failure.ts";
import { reportFailures } from "./client/each.ts";
import { counted, formatBytes } from "./client/format.ts";
import { StatusLine } from "./client/status_line.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { noOperands, readWords } from "./flags.ts";
import { serverWords } from "./server_words.ts";

const FLAGS = {
  database: {
    kind: { ...text, placeholder: "URL" },
    help: "Database of the ncps, as its --cache-database-url; default: beside its storage",
  },
  copy: { kind: boolean, default: false, help: "Copy the NAR files (default)" },
  link: { kind: boolean, default: false, help: "Share the NAR files: one file, two names" },
  move: { kind: boolean, default: false, help: "Take the NAR files over, each after its check" },
} as const;

type Flags = Values<typeof FLAGS>;

export const IMPORT: Command = {
  name: "import",
  summary: "Bring another cache's paths into the storage",
  operands: "ncps DIR|ncps-config FILE",
  about:
    `Checks every NAR against the NAR hash of its narinfo before it counts. What is broken is listed
and left, with exit status 1. Works on the storage itself, also while a server runs on it, and while
the other cache serves. Run it again to go on where it ended, or to fetch what has come meanwhile.

  ncps DIR         DIR is the --cache-storage-local of an ncps. Its signatures, pins, last uses and
                   signing key come too.
  ncps-config FILE prints the settings of an ncps as a configuration file of larder, with every line
                   explained. It reads the variables of its environment, too.
`,
  examples: [
    [
      "larder import ncps /var/lib/ncps --cache-storage-local /var/lib/larder",
      "Copy what an ncps has, and leave it as it is",
    ],
    [
      "larder import ncps-config /etc/ncps/config.yaml > larder.toml",
      "Its settings as a configuration file of larder",
    ],
    ["larder import ncps /var/lib/ncps --link", "The same without a second copy on the disk"],
  ],
  ownFlags: FLAGS,
  flags: "server",
  run: importCommand,
};

/** Further kinds of caches are rows here. */
const KINDS: Readonly<Record<string, typeof importNcpsFolder>> = {
  "ncps": importNcpsFolder,
  "ncps-config": printNcpsConfig,
};

interface Inputs {
  readonly flags: Flags;
  /** The words behind the kind. */
  readonly operands: readonly string[];
  /** The arguments for the settings. */
  readonly server: readonly string[];
}

async function importCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { own, server } = serverWords(FLAGS, args);
  const { flags, rest: [kind = "", ...operands] } = readWords(FLAGS, { ...process, args: own });
  const run = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (run === undefined) {
    const got = kind === "" ? "nothing" : JSON.stringify(kind);
    throw new ConfigError([`import: got ${got}, expected one of ${Object.keys(KINDS).join(", ")}`]);
  }
  return await run({ flags, operands, server }, process);
}

async function importNcpsFolder(inputs: Inputs, process: CommandProcess): Promise<number> {
  const folder = onlyOperand(inputs.operands, "the storage of an ncps");
  const handling = handlingOf(inputs.flags);
  const { settings, warnings } = await readSettings({ ...process, args: inputs.server });
  for (const warning of warnings) process.writeError(`larder: ${warning}\n`);
  // Loaded here, so that help and errors are fast.
  const { importNcps } = await import("../app/import_ncps.ts");
  const databaseUrl = inputs.flags.database;
  return await watched(process, async (watcher, signal) => {
    const order = { folder, databaseUrl, handling, signal };
    const { progress, key } = await importNcps(settings, order, watcher);
    process.writeOut(keyLine(key));
    return progress;
  });
}

async function printNcpsConfig(
  { operands, server }: Inputs,
  process: CommandProcess,
): Promise<number> {
  const path = onlyOperand(operands, "the configuration file of an ncps");
  noOperands(server);
  let content: string;
  try {
    content = process.readTextFile(path);
  } catch (error) {
    throw new Failure("broken", `Cannot read ${path}: ${reasonOf(error)}`, {}, error);
  }
  const { toml, problems } = await convertNcps({ path, text: content, env: process.env });
  process.writeOut(toml);
  for (const problem of problems) process.writeError(`larder: ${problem}\n`);
  return problems.length === 0 ? EXIT.ok : EXIT.failed;
}

function onlyOperand([first, ...others]: readonly string[], expected: string): string {
  if (first !== undefined && others.length === 0) return first;
  const got = first === undefined ? "nothing" : JSON.stringify([first, ...others].join(" "));
  throw new ConfigError([`import: got ${got}, expected ${expected}`]);
}

function handlingOf({ link, move, copy }: Flags): Handling {
  if (Number(link) + Number(move) + Number(copy) > 1) {
    throw new ConfigError(["--copy, --link, --move: expected only one"]);
  }
  if (link) return "link";
  return move ? "move" : "copy";
}

/** Runs an import with its progress, and reports what came of it. Ctrl-C ends it early. */
async function watched(
  process: CommandProcess,
  work: (watcher: ImportWatcher, signal: AbortSignal) => Promise<ImportProgress>,
): Promise<number> {
  const broken: BrokenEntry[] = [];
  let last: ImportProgress | undefined;
  const watcher: ImportWatcher = {
    progress: (progress) => last = progress,
    broken: (entry) => void broken.push(entry),
  };
  const { stopWatch } = await import("../app/lifecycle.ts");
  using stopping = stopWatch();
  try {
    using _status = new StatusLine(process, () => progressLine(last, broken.length));
    last = await work(watcher, stopping.signal);
  } finally {
    if (last !== undefined) process.writeOut(reportOf(last));
  }
  const failures = broken.map(({ name, problem }) => ({ what: name, reason: problem }));
  const status = reportFailures(failures, "not imported:", process.writeError);
  const { withoutRoom } = last;
  if (withoutRoom > 0) {
    const paths = counted(withoutRoom, "path");
    process.writeError(`larder: no room for ${paths}: raise --cache-max-size and run it again\n`);
  }
  if (stopping.signal.aborted) process.writeError("larder: stopped; run it again to go on\n");
  return status !== EXIT.ok || withoutRoom > 0 || stopping.signal.aborted ? EXIT.failed : EXIT.ok;
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

function keyLine({ outcome, path, publicKey }: NcpsKey): string {
  if (outcome === "adopted") return `signing key of the ncps in ${path}: ${publicKey}\n`;
  if (outcome === "none") {
    return "the ncps has no key in its database: give its file with --cache-secret-key-path\n";
  }
  return `${path} holds another key, and stays: clients need ${publicKey} too, or remove that ` +
    "file and run it again\n";
}
