import type {
  ExportProgress,
  ExportWatcher,
  NotExported,
} from "../cache/export/export_closures.ts";
import { EXIT } from "../base/exit_codes.ts";
import { ConfigError } from "../config/config_error.ts";
import { folderOfUrl } from "./cache_folder_argument.ts";
import { reportFailures } from "./client/each.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import { StatusLine } from "./client/status_line.ts";
import { readStorePathArguments } from "./client/store_path_argument.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { serverSettings, splitServerArguments } from "./server_arguments.ts";
import { STORE_PATH_ABOUT } from "./pin.ts";

export const EXPORT: Command = {
  name: "export",
  summary: "Write closures as a plain binary cache",
  operands: "file:///DIR PATH...",
  about:
    `It reads the storage itself, also while a server runs. DIR becomes a binary cache for any Nix:
on a stick, behind a web server, or for another cache. It compares every file with its hash. It
lists missing paths, with exit status 1. Run it again to add new ones.

${STORE_PATH_ABOUT}`,
  examples: [
    ["larder export file:///media/stick ./result", "Carry a build to a machine without a network"],
    ["nix copy --from file:///media/stick /nix/store/...", "Read it there"],
  ],
  flags: "server",
  run: exportCommand,
};

async function exportCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { own: [url = "", ...paths], server } = splitServerArguments({}, args);
  const folder = folderOfUrl(url);
  if (folder === undefined) {
    const got = url === "" ? "nothing" : JSON.stringify(url);
    throw new ConfigError([`export: got ${got}, expected file:/// and a directory`]);
  }
  const targets = readStorePathArguments(paths, process);
  const { settings } = await serverSettings(server, process);
  // Loaded here, so that help and errors are fast.
  const { exportStorage } = await import("../app/export.ts");
  const { stopWatch } = await import("../app/lifecycle.ts");
  using stopping = stopWatch();
  const missing: NotExported[] = [];
  let last: ExportProgress = { pathsDone: 0, pathsKnown: targets.length, bytes: 0 };
  const watcher: ExportWatcher = {
    progress: (progress) => last = progress,
    missing: (path) => void missing.push(path),
  };
  {
    using _status = new StatusLine(process, () => progressLine(last));
    const roots = targets.map(({ storePathHash }) => storePathHash);
    await exportStorage(settings, { folder, roots, signal: stopping.signal }, watcher);
  }
  const whole = counted(last.pathsDone - missing.length, "path");
  process.writeOut(`exported ${whole}: ${formatBytes(last.bytes)} written to ${folder}\n`);
  const failures = missing.map(({ name, problem }) => ({ name, reason: problem }));
  const status = reportFailures(failures, "not exported:", process.writeError);
  return stopping.signal.aborted ? EXIT.failed : status;
}

function progressLine({ pathsDone, pathsKnown, bytes }: ExportProgress): string {
  return `${pathsDone}/${counted(pathsKnown, "path")}  ${formatBytes(bytes)}`;
}
