import { tokensOf } from "../app/tokens.ts";
import { EXIT } from "../base/exit_codes.ts";
import { boolean } from "../config/kinds/plain.ts";
import { OPTION_GROUPS, OPTIONS } from "../config/options.ts";
import { effectiveSettings, effectiveSettingsJson } from "../config/render_settings.ts";
import { sampleFile } from "../config/render_toml.ts";
import { permissionsText } from "../http/access/permissions.ts";
import { JSON_FLAG } from "./client/client_flags.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { serverSettings } from "./server_arguments.ts";

const FLAGS = {
  permissions: {
    kind: boolean,
    default: false,
    help: "Print which role each request needs, with the tokens that are set here",
  },
  example: { kind: boolean, default: false, help: "Print every option with its default instead" },
  json: JSON_FLAG,
} as const;

const PERMISSIONS_FLAG = "--permissions";

const EXAMPLE_ABOUT = "Every option of larder at its default.";

export const CONFIG: Command = {
  name: "config",
  summary: "Print the effective settings and where each came from",
  examples: [
    ["larder config", "Print the settings that `larder serve` would use here, secrets hidden"],
    ["larder config --permissions", "Print the role that each request needs with these settings"],
    ["larder config --log-level debug > larder.toml", "Keep it as a configuration file"],
    ["larder config --example > larder.toml", "Begin with a file that explains every option"],
  ],
  ownFlags: FLAGS,
  flags: "server",
  run: configCommand,
};

async function configCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  if (args.length === 1 && args[0] === "--example") {
    process.writeOut(sampleFile(OPTIONS, EXAMPLE_ABOUT));
    return EXIT.ok;
  }
  if (!args.includes(PERMISSIONS_FLAG)) return await printSettings(args, process);
  const ofServer = args.filter((word) => word !== PERMISSIONS_FLAG);
  const { settings } = await serverSettings(ofServer, process);
  process.writeOut(permissionsText(new Set(tokensOf(settings).map(({ role }) => role))));
  return EXIT.ok;
}

/** Prints the settings of these arguments of the server, and where each comes from. */
export async function printSettings(
  args: readonly string[],
  process: CommandProcess,
): Promise<number> {
  const ofServer = args.filter((word) => word !== "--json");
  const { settings: values, sources } = await serverSettings(ofServer, process);
  if (ofServer.length === args.length) {
    process.writeOut(effectiveSettings(OPTION_GROUPS, { values, sources }));
  } else {
    const settings = effectiveSettingsJson(OPTIONS, { values, sources });
    process.writeOut(`${JSON.stringify(settings, null, 2)}\n`);
  }
  return EXIT.ok;
}
