import { flagName, type OptionTable } from "../config/kinds/option.ts";
import { OPTION_GROUPS } from "../config/options.ts";
import { helpText } from "../config/render_help.ts";
import type { Command } from "./command.ts";

/** `larder --help`. */
export function generalHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const list = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `larder is a pull-through binary cache for Nix. It fetches each store path once from
upstream caches, verifies it, and serves it from disk, also while upstreams break and disks fill up.

Usage: larder COMMAND [OPTION]...

Commands:
${list.join("")}
  larder help COMMAND  lists the options of a command
  larder --version     prints the version

To begin, run \`larder serve\`. On the same machine, add this option to a command of Nix:
  --option extra-substituters http://localhost:8501
\`larder client-config\` prints the lines for other machines.
`;
}

/** `larder COMMAND --help`. The options of the server are those of `larder serve` alone. */
export function commandHelp(command: Command, columns = Infinity): string {
  const { name, summary, operands, about, examples, flags, ownFlags: further } = command;
  const lines = examples.map(([line, effect]) =>
    `  ${brokenCommand(line, columns)}\n      ${effect}\n`
  );
  const own = { ...further, ...flags === "server" ? {} : flags };
  const parts = [
    ...Object.keys(own).length > 0 ? [ownFlags(own)] : [],
    ...flags !== "server" ? [] : [name === "serve" ? serverFlags() : SERVER_FLAGS_POINTER],
  ];
  return `${summary}.

Usage: larder ${name} [OPTION]...${operands === undefined ? "" : ` ${operands}`}

${about === undefined ? "" : `${about}\n`}Examples:
${lines.join("")}
${parts.join("\n")}`;
}

/** A command line that a shell reads on several lines. It never breaks inside quotes. */
function brokenCommand(line: string, columns: number): string {
  let at = INDENT.length;
  return (line.match(/(?:'[^']*'|"[^"]*"|\S)+/g) ?? []).map((word, index, { length }) => {
    // All but the last word leave room for the mark.
    const end = at + word.length + (index === 0 ? 0 : 1) + (index === length - 1 ? 0 : 2);
    if (index === 0 || end <= columns) {
      at += word.length + (index === 0 ? 0 : 1);
      return index === 0 ? word : ` ${word}`;
    }
    at = FURTHER_INDENT.length + word.length;
    return ` \\\n${FURTHER_INDENT}${word}`;
  }).join("");
}

const INDENT = "  ";
/** Short: the longest word of an example and a mark fit 60 columns behind it. */
const FURTHER_INDENT = "   ";

const SERVER_FLAGS_POINTER =
  `It reads the settings of the server, from the same flags, variables and configuration file.
\`larder serve --help\` lists them; most often --config or --cache-storage-local is enough.
`;

function serverFlags(): string {
  // Help texts fit 100 columns, and so does this file.
  const first =
    "Every option is a flag, an environment variable (in capitals below) and a key of " +
    "the configuration";
  return `${first}
file. A flag wins over the variable, the variable over the file. Write --flag VALUE or
--flag=VALUE. A list is separated by commas in a variable. \`larder config\` shows the outcome.

${helpText(OPTION_GROUPS)}`;
}

// Wide enough for the flag of a secret's file.
const FLAG_WIDTH = 24;

function ownFlags(table: OptionTable): string {
  const entries = Object.entries(table).map(([key, { kind, secret, ...option }]) => {
    const flag = flagName(key);
    const isSwitch = kind.bare === "boolean";
    const usage = isSwitch ? flag : `${flag} ${kind.placeholder}`;
    const { variable = "", default: value } = option;
    const lines = [
      option.help,
      ...secret ? [`Can be read from a file: ${flag}-file PATH`] : [],
      ...isSwitch || value === undefined ? [] : [`Default: ${kind.print(value)}`],
    ];
    const head = `${usage.padEnd(FLAG_WIDTH)}  ${variable}`.trimEnd();
    return `  ${head}\n${lines.map((line) => `      ${line}\n`).join("")}`;
  });
  return `Options:\n${entries.join("")}`;
}
