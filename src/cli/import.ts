import { ConfigError } from "../config/config_error.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { parseArguments } from "./flags.ts";
import { importBinaryCache, importNginxFolder } from "./import_cache.ts";
import { importNcpsFolder, printNcpsConfig } from "./import_ncps.ts";
import { IMPORT_FLAGS, type ImportInputs } from "./import_run.ts";
import { splitServerArguments } from "./server_arguments.ts";

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
