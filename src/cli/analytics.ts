import { usageReportText } from "../app/usage_report.ts";
import { boolean } from "../config/kinds/plain.ts";
import type { Command } from "./command.ts";
import { EXIT } from "../base/exit_codes.ts";
import type { CommandProcess } from "./command_process.ts";
import { serverSettings } from "./server_arguments.ts";

const FLAGS = {
  show: { kind: boolean, default: false, help: "Print the report, and send nothing" },
} as const;

export const ANALYTICS: Command = {
  name: "analytics",
  summary: "Print the exact report that usage reporting would send",
  examples: [["larder analytics --show", "The report of these settings; nothing is sent"]],
  ownFlags: FLAGS,
  flags: "server",
  run: analyticsCommand,
};

/** Prints the report, and on standard error whether a server would send it. */
async function analyticsCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const isShow = (arg: string) => arg === "--show" || arg === "--show=true";
  if (!args.some(isShow)) {
    process.writeError("larder: analytics: nothing to do, expected --show\n");
    return EXIT.usage;
  }
  const serverArgs = args.filter((arg) => !isShow(arg));
  const { settings } = await serverSettings(serverArgs, process);
  const url = settings["analytics.reporting-url"];
  const isSent = settings["analytics.reporting-enabled"] && url !== undefined;
  process.writeError(isSent ? `Sent once a day to ${url}:\n` : "Not sent; it would be:\n");
  process.writeOut(usageReportText(settings));
  return EXIT.ok;
}
