import type { Command } from "./command.ts";
import { completionFlags } from "./completion_flags.ts";

/** A script for bash 4 and newer that completes commands, flags and file names. */
export function bashCompletion(commands: readonly Command[]): string {
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
