import { OPTIONS, type Settings } from "./options.ts";
import { type Inputs, resolve, type Resolved } from "./resolve.ts";
import { RULES } from "./rules.ts";

/** The settings of larder, where each came from, and what to warn about. */
export type ResolvedSettings = Resolved<typeof OPTIONS> & { readonly settings: Settings };

/** The effective settings of larder. Throws a `ConfigError` with every problem at once. */
export function resolveSettings(inputs: Inputs): ResolvedSettings {
  return resolve(OPTIONS, inputs, RULES);
}
