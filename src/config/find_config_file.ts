import { messageOf } from "../base/failure.ts";
import type { OptionTable } from "./option.ts";
import { readConfigFile } from "./sources/config_file.ts";
import type { Environment } from "./sources/environment.ts";
import type { Findings, Found } from "./sources/found.ts";

/** The key of the option that names the configuration file. */
export const CONFIG_FILE_KEY = "config";

/** What finding and reading the file takes. */
export interface ConfigFileInputs {
  readonly env: Environment;
  readonly readTextFile: (path: string) => string;
  readonly fileExists: (path: string) => boolean;
}

/**
 * What the configuration file says: the one that flags or environment name, else the first of
 * the default places that exists, else nothing.
 */
export function findConfigFile(
  table: OptionTable,
  named: readonly Found[],
  inputs: ConfigFileInputs,
): Findings {
  const choice = named.find(({ key }) => key === CONFIG_FILE_KEY);
  const path = choice?.given[0]?.text ?? defaultPlaces(inputs.env).find(inputs.fileExists);
  // An empty path is reported where the option itself is read.
  if (!path) return { found: [], problems: [] };

  let text: string;
  try {
    text = inputs.readTextFile(path);
  } catch (error) {
    const spelled = choice?.spelled ?? "configuration file";
    const expected = `a file that can be read (${messageOf(error)})`;
    const problem = `${spelled}: got ${JSON.stringify(path)}, expected ${expected}`;
    return { found: [], problems: [problem] };
  }
  return readConfigFile(table, path, text);
}

function defaultPlaces({ XDG_CONFIG_HOME: configHome }: Environment): readonly string[] {
  const places = ["/etc/larder/config.toml"];
  // The XDG specification has relative paths ignored.
  if (configHome?.startsWith("/")) places.unshift(`${configHome}/larder/config.toml`);
  return places;
}
