import { OPTION_GROUPS } from "../config/options.ts";
import { effectiveSettings } from "../config/render_settings.ts";
import { readSettings } from "../config/settings.ts";
import { EXIT } from "../base/exit_codes.ts";
import type { Host } from "./host.ts";

/** `larder config`: prints the effective settings as TOML. */
export async function configCommand(args: readonly string[], host: Host): Promise<number> {
  const { settings, sources, warnings } = await readSettings({ ...host, args });
  for (const warning of warnings) host.writeError(`larder: ${warning}\n`);
  host.writeOut(effectiveSettings(OPTION_GROUPS, { values: settings, sources }));
  return EXIT.ok;
}
