import { EXIT } from "../base/exit_codes.ts";
import { choice } from "../config/kinds/plain.ts";
import type { Command } from "./command.ts";
import { parseArguments } from "./flags.ts";
import type { CommandProcess } from "./command_process.ts";
import { flagName, type OptionTable } from "../config/kinds/option.ts";
import { OPTIONS } from "../config/options.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

const shell = choice("bash", "zsh", "fish");

/** `larder completion`: `commands` are those that the script completes. */
export function completionCommand(commands: () => readonly Command[]): Command {
  return {
    name: "completion",
    summary: "Print a script that completes larder's commands and flags in a shell",
    operands: "bash|zsh|fish",
    examples: [
      ["source <(larder completion bash)", "Complete in this bash"],
      ["larder completion fish > ~/.config/fish/completions/larder.fish", "In each fish to come"],
    ],
    flags: {},
    run: (args, process) => printScript(args, process, commands()),
  };
}

async function printScript(
  args: readonly string[],
  process: CommandProcess,
  commands: readonly Command[],
): Promise<number> {
  const { rest } = parseArguments({}, { ...process, args });
  const [name, ...others] = rest;
  if (name === undefined || others.length > 0 || !Object.hasOwn(SCRIPTS, name)) {
    const got = rest.length === 0 ? "nothing" : JSON.stringify(rest.join(" "));
    process.writeError(`larder: completion: got ${got}, expected ${shell.placeholder}\n`);
    return EXIT.usage;
  }
  process.writeOut(SCRIPTS[name as keyof typeof SCRIPTS](commands));
  return EXIT.ok;
}

/** A flag for shell completion. */
interface CompletionFlag {
  /** `--cache-max-size`. */
  readonly flag: string;
  readonly help: string;
  /** True if a value follows as another word. */
  readonly takesValue: boolean;
}

/** The flags of a command: its own, then the server's if it takes them. */
function completionFlags({ flags, ownFlags = {} }: Command): readonly CompletionFlag[] {
  const table: OptionTable = { ...ownFlags, ...flags === "server" ? OPTIONS : flags };
  return Object.entries(table).flatMap(([key, { kind, help, secret, default: standard }]) => {
    const flag = flagName(key);
    if (kind.bare === "boolean") {
      const denied = { flag: `--no-${flag.slice(2)}`, help, takesValue: false };
      return [{ flag, help, takesValue: false }, ...standard === true ? [denied] : []];
    }
    const file = { flag: `${flag}-file`, help: `${help} (from a file)`, takesValue: true };
    return [{ flag, help, takesValue: true }, ...secret ? [file] : []];
  });
}

/** A script for bash 4 and newer that completes commands, flags and file names. */
function bashCompletion(commands: readonly Command[]): string {
  const cases = commands.map((command) => {
    const flags = [...completionFlags(command).map(({ flag }) => flag), "--help"];
    return `    ${command.name}) words="${flags.join(" ")}" ;;\n`;
  });
  const names = [...commands.map(({ name }) => name), "help", "--help", "--version"];
  return `# Completion of larder for bash. To load it: source <(larder completion bash)
_larder() {
  local current=\${COMP_WORDS[COMP_CWORD]} words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names.join(" ")}" -- "$current"))
    return
  fi
  case \${COMP_WORDS[1]} in
    help) COMPREPLY=($(compgen -W "${names.join(" ")}" -- "$current")); return ;;
${cases.join("")}  esac
  if [ "\${current:0:1}" = - ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
complete -o bashdefault -o default -F _larder larder
`;
}

/** A script for fish 3 and newer. */
function fishCompletion(commands: readonly Command[]): string {
  const names = commands.map(({ name, summary }) =>
    `complete -c larder -f -n __fish_use_subcommand -a ${name} -d ${fishQuoted(summary)}\n`
  );
  const flags = commands.flatMap((command) => {
    const within = `complete -c larder -n '__fish_seen_subcommand_from ${command.name}'`;
    return completionFlags(command).map(({ flag, help, takesValue }) =>
      `${within} -l ${flag.slice(2)}${takesValue ? " -r" : ""} -d ${fishQuoted(help)}\n`
    );
  });
  return `# Completion of larder for fish. To load it: larder completion fish | source
${names.join("")}${flags.join("")}`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
}

/** A script for zsh: a function for a folder of `fpath`, or to source. */
function zshCompletion(commands: readonly Command[]): string {
  const names = commands.map(({ name, summary }) => `    ${zshQuoted(`${name}:${summary}`)}\n`);
  const cases = commands.map((command) => {
    const flags = completionFlags(command).map(({ flag, help, takesValue }) =>
      `        ${zshQuoted(`${flag}${takesValue ? "=" : ""}[${escaped(help)}]`)} \\\n`
    );
    return `    ${command.name})\n      _arguments \\\n${
      flags.join("")
    }        '*:file:_files' ;;\n`;
  });
  return `#compdef larder
# Completion of larder for zsh. To load it: source <(larder completion zsh)
_larder() {
  local -a commands
  commands=(
${names.join("")}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
    help) _describe command commands ;;
${cases.join("")}  esac
}
if [ "\${funcstack[1]-}" = _larder ]; then _larder "$@"; else compdef _larder larder; fi
`;
}

/** Brackets and colons end a text of `_arguments`. */
function escaped(help: string): string {
  return help.replaceAll(/[[\]:\\]/g, "\\$&");
}

function zshQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
