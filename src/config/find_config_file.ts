import { reasonOf } from "../base/failure.ts";
import type { OptionTable } from "./kinds/option.ts";
import { readConfigFile } from "./sources/config_file.ts";
import { isYamlPath, parseTomlText, type ParseYaml } from "./sources/config_text.ts";
import { type Environment, readEnvironment } from "./sources/environment.ts";
import { readFlags } from "./sources/flags.ts";
import type { Findings, FoundOption } from "./sources/found.ts";

/** The key of the option that names the configuration file. */
const CONFIG_FILE_KEY = "config";

/** Inputs for finding and reading the file. */
export interface ConfigFileInputs {
  readonly env: Environment;
  readonly readTextFile: (path: string) => string;
  readonly fileExists: (path: string) => boolean;
  /** Parser from `loadYamlParser`, if `configFilePath` names a YAML file. */
  readonly parseYaml?: ParseYaml;
}

/** The path of the file that `findConfigFile` reads, if any. */
export function configFilePath(
  table: OptionTable,
  inputs: ConfigFileInputs & { readonly args: readonly string[] },
): string | undefined {
  const flags = readFlags(table, inputs.args);
  const environment = readEnvironment(table, inputs.env);
  return pathOf(choiceIn([...flags.found, ...environment.found]), inputs);
}

/**
 * The settings of the configuration file: the one named by flag or environment, else the first
 * existing default. Without a file there are none.
 */
export function findConfigFile(
  table: OptionTable,
  named: readonly FoundOption[],
  inputs: ConfigFileInputs,
): Findings {
  const choice = choiceIn(named);
  const path = pathOf(choice, inputs);
  // The option itself reports an empty path.
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

/** A warning if ncps has a file in its default place, and larder reads no file. */
export function unreadFile(
  named: readonly FoundOption[],
  inputs: ConfigFileInputs,
): readonly string[] {
  if (pathOf(choiceIn(named), inputs)) return [];
  const home = configHome(inputs.env);
  const path = `${home}/ncps/config.yaml`;
  if (home === undefined || !inputs.fileExists(path)) return [];
  return [`${path}: is not read; give it as --config to use it`];
}

function choiceIn(named: readonly FoundOption[]): FoundOption | undefined {
  return named.find(({ key }) => key === CONFIG_FILE_KEY);
}

function pathOf(choice: FoundOption | undefined, inputs: ConfigFileInputs): string | undefined {
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

/** XDG's folder for configuration; it ignores relative paths. */
function configHome({ XDG_CONFIG_HOME: given, HOME: home }: Environment): string | undefined {
  if (given?.startsWith("/")) return given.replace(/\/+$/, "");
  return home?.startsWith("/") ? `${home.replace(/\/+$/, "")}/.config` : undefined;
}
