import { OPTION_GROUPS } from "../config/options.ts";
import { helpText } from "../config/render_help.ts";
import type { Command } from "./command.ts";

/** `larder --help`. */
export function generalHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const list = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `larder keeps what Nix downloads and serves it again, verified, from nearby.

Usage: larder COMMAND [OPTION]...

Commands:
${list.join("")}
  larder help COMMAND  lists the options of a command
  larder --version     prints the version

To begin, run \`larder serve\` and give a Nix
  --option substituters http://localhost:8501
`;
}

/** `larder COMMAND --help`. */
export function commandHelp({ name, summary, examples }: Command): string {
  const lines = examples.map(([line, effect]) => `  ${line}\n      ${effect}\n`);
  return `${summary}.

Usage: larder ${name} [OPTION]...

Examples:
${lines.join("")}
Every option is a flag, an environment variable (in capitals below) and a key of the configuration
file. A flag wins over the variable, the variable over the file. Write --flag VALUE or
--flag=VALUE. A list is separated by commas in a variable. \`larder config\` shows the outcome.

${helpText(OPTION_GROUPS)}`;
}
