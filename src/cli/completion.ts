import { EXIT } from "../base/exit_codes.ts";
import { choice } from "../config/kinds/plain.ts";
import type { Command } from "./command.ts";
import { parseArguments } from "./flags.ts";
import type { CommandProcess } from "./command_process.ts";
import { bashCompletion } from "./bash_completion.ts";
import { fishCompletion } from "./fish_completion.ts";
import { zshCompletion } from "./zsh_completion.ts";

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
