import { configFilePath } from "./find_config_file.ts";
import { OPTIONS, type Settings } from "./options.ts";
import { NCPS_ONLY } from "./options/ncps_only.ts";
import { type Inputs, resolve, type Resolved } from "./resolve.ts";
import { NO_EFFECT, RULES } from "./rules.ts";
import { isYamlPath, loadYamlParser } from "./sources/config_text.ts";

/** The settings of larder, with their sources and warnings. */
export type ResolvedSettings = Resolved<typeof OPTIONS> & { readonly settings: Settings };

/** Like `resolveSettings`, also from a file of YAML or JSON. */
export async function readSettings(inputs: Inputs): Promise<ResolvedSettings> {
  const path = configFilePath(OPTIONS, inputs);
  if (path === undefined || !isYamlPath(path)) return resolveSettings(inputs);
  return resolveSettings({ ...inputs, parseYaml: await loadYamlParser() });
}

/** The effective settings of larder. Throws a `ConfigError` with all problems at once. */
export function resolveSettings(inputs: Inputs): ResolvedSettings {
  return resolve(OPTIONS, inputs, { rules: RULES, noEffect: NO_EFFECT, foreign: NCPS_ONLY });
}
