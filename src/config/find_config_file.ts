import { reasonOf } from "../base/failure.ts";
import type { OptionTable } from "./kinds/option.ts";
import { readConfigFile } from "./sources/config_file.ts";
import { isYamlPath, parseTomlText, type ParseYaml } from "./sources/config_text.ts";
import { type Environment, readEnvironment } from "./sources/environment.ts";
import { readFlags } from "./sources/flags.ts";
import type { Findings, Found } from "./sources/found.ts";

/** The key of the option that names the configuration file. */
const CONFIG_FILE_KEY = "config";

/** What finding and reading the file takes. */
export interface ConfigFileInputs {
  readonly env: Environment;
  readonly readTextFile: (path: string) => string;
  readonly fileExists: (path: string) => boolean;
  /** Loaded by `loadYamlParser` where `configFilePath` is that of a YAML file. */
  readonly parseYaml?: ParseYaml;
}

/** The path of the file that `findConfigFile` reads, if there is one. */
export function configFilePath(
  table: OptionTable,
  inputs: ConfigFileInputs & { readonly args: readonly string[] },
): string | undefined {
  const flags = readFlags(table, inputs.args);
  const environment = readEnvironment(table, inputs.env);
  return pathOf(choiceIn([...flags.found, ...environment.found]), inputs);
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
  const choice = choiceIn(named);
  const path = pathOf(choice, inputs);
  // An empty path is reported where the option itself is read.
  if (!path) return { found: [], problems: [] };

  let text: string;
  try {
    text = inputs.readTextFile(path);
  } catch (error) {
    const spelled = choice?.spelled ?? "configuration file";
    const expected = `a file that can be read (${reasonOf(error)})`;
    const problem = `${spelled}: got ${JSON.stringify(path)}, expected ${expected}`;
    return { found: [], problems: [problem] };
  }
  return readConfigFile(table, path, parserFor(path, inputs)(text));
}

/** A warning where a file of ncps lies in its default place, and no file of larder is read. */
export function unreadFile(named: readonly Found[], inputs: ConfigFileInputs): readonly string[] {
  if (pathOf(choiceIn(named), inputs)) return [];
  const home = configHome(inputs.env);
  const path = `${home}/ncps/config.yaml`;
  if (home === undefined || !inputs.fileExists(path)) return [];
  return [`${path}: is not read; give it as --config to use it`];
}

function choiceIn(named: readonly Found[]): Found | undefined {
  return named.find(({ key }) => key === CONFIG_FILE_KEY);
}

function pathOf(choice: Found | undefined, inputs: ConfigFileInputs): string | undefined {
  return choice?.given[0]?.text ?? defaultPlaces(inputs.env).find(inputs.fileExists);
}

function parserFor(path: string, { parseYaml }: ConfigFileInputs): ParseYaml {
  if (!isYamlPath(path)) return parseTomlText;
  if (parseYaml === undefined) throw new Error("Cannot read YAML: its parser is not loaded");
  return parseYaml;
}

function defaultPlaces(env: Environment): readonly string[] {
  const home = configHome(env);
  const system = "/etc/larder/config.toml";
  return home === undefined ? [system] : [`${home}/larder/config.toml`, system];
}

/** Where the XDG specification has users keep such files; it ignores relative paths. */
function configHome({ XDG_CONFIG_HOME: given, HOME: home }: Environment): string | undefined {
  if (given?.startsWith("/")) return given.replace(/\/+$/, "");
  return home?.startsWith("/") ? `${home.replace(/\/+$/, "")}/.config` : undefined;
}
