import type { CachePlace } from "../app/import_cache.ts";
import { ConfigError } from "../config/config_error.ts";
import { upstreamUrl } from "../config/kinds/upstream_url.ts";
import { folderOfUrl } from "./cache_folder_argument.ts";
import { readStorePathArguments } from "./client/store_path_argument.ts";
import type { CommandProcess } from "./command_process.ts";
import { fileText, handlingOf, type ImportInputs, onlyOperand, runImport } from "./import_run.ts";

/** `larder import cache`. */
export async function importBinaryCache(
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
export async function importNginxFolder(
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
