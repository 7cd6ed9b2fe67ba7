import denoJson from "../../deno.json" with { type: "json" };
import { EXIT } from "../base/exit_codes.ts";
import type { Command } from "./command.ts";
import { noOperands, parseArguments } from "./flags.ts";
import { flagName, type OptionTable, variableFor } from "../config/kinds/option.ts";
import { OPTION_GROUPS } from "../config/options.ts";
import { defaultText } from "../config/render_toml.ts";

/** `larder man`: `commands` are those that the page describes. */
export function manCommand(commands: () => readonly Command[]): Command {
  return {
    name: "man",
    summary: "Print the manual page larder(1)",
    examples: [
      ["larder man | man -l -", "Read it"],
      ["larder man > /usr/local/share/man/man1/larder.1", "Let `man larder` find it"],
    ],
    flags: {},
    async run(args, process) {
      noOperands(parseArguments({}, { ...process, args }).rest);
      process.writeOut(manPage(commands(), denoJson.version));
      return EXIT.ok;
    },
  };
}

/** The manual page larder(1), in the language of man(7). */
function manPage(commands: readonly Command[], version: string): string {
  const options = OPTION_GROUPS.map(({ title, options }) =>
    `.SS ${title} options\n${optionEntries(options, true)}`
  );
  return `.TH LARDER 1 "" "larder ${version}" "User Commands"
.SH NAME
larder \\- pull-through binary cache for Nix
.SH SYNOPSIS
.B larder
.I COMMAND
.RI [ OPTION ]...
.SH DESCRIPTION
larder fetches narinfos and NARs from upstream binary caches once, verifies them, keeps them, and
serves them to Nix clients over HTTP.
Every option of the server is a flag, an environment variable and a key of the configuration file.
A flag wins over the variable, the variable over the file.
.SH COMMANDS
${commands.map(commandEntry).join("")}.SH OPTIONS
These are the options of
.B larder serve
and
.BR "larder config" .
${options.join("")}.SH FILES
.TP
.I $XDG_CONFIG_HOME/larder/config.toml
The configuration file, unless \\-\\-config names another.
.TP
.I /etc/larder/config.toml
The configuration file where the first one does not exist.
.SH EXIT STATUS
0: done. 1: failed. 2: the arguments or the settings are wrong, and nothing was done.
.SH SEE ALSO
.BR nix.conf (5)
`;
}

function commandEntry({ name, summary, operands, about, examples, ...rest }: Command): string {
  const usage = `larder ${name} [OPTION]...${operands === undefined ? "" : ` ${operands}`}`;
  const own: OptionTable = { ...rest.ownFlags, ...rest.flags === "server" ? {} : rest.flags };
  const lines = examples.map(([line, effect]) => `.TP\n.B ${escaped(line)}\n${escaped(effect)}.\n`);
  const flags = Object.keys(own).length === 0 ? "" : optionEntries(own, false);
  return `.SS ${escaped(usage)}\n${escaped(summary)}.\n` +
    (about === undefined ? "" : `${escaped(about.trim())}\n`) + flags +
    `.PP\nExamples:\n${lines.join("")}`;
}

function optionEntries(table: OptionTable, hasVariables: boolean): string {
  return Object.entries(table).map(([key, option]) => {
    const { kind, help, details } = option;
    const flag = escaped(flagName(key));
    const usage = kind.bare === "boolean" ? flag : `${flag} ${escaped(kind.placeholder)}`;
    const variable = hasVariables ? variableFor(key, option) : option.variable;
    const standard = kind.bare === "boolean" ? undefined : defaultText(option);
    const lines = [
      `${escaped(help)}.`,
      ...details === undefined ? [] : [escaped(details)],
      ...standard === undefined ? [] : [`Default: ${escaped(standard)}.`],
      ...variable === undefined ? [] : [`Environment variable: ${escaped(variable)}.`],
    ];
    return `.TP\n.B ${usage}\n${lines.join("\n")}\n`;
  }).join("");
}

/** Text without roff requests. A line must not begin with a dot or an apostrophe. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll(/^([.'])/gm, "\\&$1")
    .replaceAll(/[^\n -~]/g, (char) => `\\[u${hex(char)}]`).replaceAll(/\n\n+/g, "\n.PP\n");
}

function hex(char: string): string {
  return (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}
