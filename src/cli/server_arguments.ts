import { ConfigError } from "../config/config_error.ts";
import type { OptionTable } from "../config/kinds/option.ts";
import { OPTIONS } from "../config/options.ts";
import { NCPS_ONLY } from "../config/options/ncps_only.ts";
import { splitArguments } from "../config/sources/flags.ts";
import { readSettings, type ResolvedSettings } from "../config/settings.ts";
import type { CommandProcess } from "./command_process.ts";

/** The arguments of a command that takes the server's options, operands and flags of its own. */
export interface ServerArguments {
  /** Its own flags with their values, and the operands. */
  readonly own: readonly string[];
  /** All other flags with their values. */
  readonly server: readonly string[];
}

/** Splits arguments. Throws a ConfigError for an unknown flag: its value would be an operand. */
export function splitServerArguments(
  ownFlags: OptionTable,
  args: readonly string[],
): ServerArguments {
  const own: string[] = [];
  const server: string[] = [];
  for (const { texts, flag } of splitArguments({ ...OPTIONS, ...NCPS_ONLY, ...ownFlags }, args)) {
    if (flag !== undefined && "problem" in flag && flag.spelling === undefined) {
      throw new ConfigError([flag.problem]);
    }
    const key = flag?.spelling?.key;
    const isOwn = key === undefined || Object.hasOwn(ownFlags, key);
    (isOwn ? own : server).push(...texts);
  }
  return { own, server };
}

/** The settings that the arguments give. Their warnings go to standard error. */
export async function serverSettings(
  args: readonly string[],
  process: CommandProcess,
): Promise<ResolvedSettings> {
  const resolved = await readSettings({ ...process, ...process.namedFiles, args });
  for (const warning of resolved.warnings) process.writeError(`larder: ${warning}\n`);
  return resolved;
}
