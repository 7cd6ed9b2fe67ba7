import { readSettings, type ResolvedSettings } from "../config/settings.ts";
import type { CommandProcess } from "./command_process.ts";

/** The settings that the arguments give. Their warnings go to standard error. */
export async function serverSettings(
  args: readonly string[],
  process: CommandProcess,
): Promise<ResolvedSettings> {
  const resolved = await readSettings({ ...process, ...process.namedFiles, args });
  for (const warning of resolved.warnings) process.writeError(`larder: ${warning}\n`);
  return resolved;
}
