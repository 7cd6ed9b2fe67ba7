import type { Command } from "./command.ts";
import { completionFlags } from "./completion_flags.ts";

/** A script for zsh: a function for a folder of `fpath`, or to source. */
export function zshCompletion(commands: readonly Command[]): string {
  const names = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}\n`);
  const cases = commands.map((command) => {
    const flags = completionFlags(command).map(({ flag, help, takesValue }) =>
      `        ${quoted(`${flag}${takesValue ? "=" : ""}[${escaped(help)}]`)} \\\n`
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

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
