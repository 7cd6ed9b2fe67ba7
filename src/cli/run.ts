import denoJson from "../../deno.json" with { type: "json" };
import { Failure, messageOf } from "../base/failure.ts";
import { ConfigError } from "../config/config_error.ts";
import { suggestion } from "../base/nearest.ts";
import type { Command } from "./command.ts";
import { commandFirst } from "./command_first.ts";
import { EXIT } from "../base/exit_codes.ts";
import { type CommandProcess, denoProcess, sanitizedProcess } from "./command_process.ts";
import { SERVE } from "./serve.ts";

/** Runs the command in `args`. Resolves to the exit status once all output is written. */
export async function run(args: readonly string[], real = denoProcess()): Promise<number> {
  const process = sanitizedProcess(real);
  const [word, ...rest] = commandFirst(args);
  if (word === undefined) {
    const { COMMANDS, generalHelp } = await others();
    process.writeError(generalHelp(COMMANDS));
    return EXIT.usage;
  }
  if (word === "--version" || word === "-V") {
    process.writeOut(`larder ${denoJson.version}\n`);
    return EXIT.ok;
  }
  if (word === "help" || isHelp(word)) return await help(rest[0], process);

  const command = await findCommand(word);
  if (command === undefined) return await unknownCommand(word, process);
  if (command.runsNix !== true) process.giveUpRun();
  if (rest.some(isHelp)) return await help(word, process);
  try {
    return await command.run(rest, process);
  } catch (error) {
    return explain(error, process);
  }
}

function isHelp(word: string): boolean {
  return word === "--help" || word === "-h";
}

/** Loads the modules that `serve` does not need: a server would keep them in memory. */
async function others() {
  const [{ COMMANDS }, help] = await Promise.all([import("./commands.ts"), import("./help.ts")]);
  return { COMMANDS, ...help };
}

async function findCommand(word: string): Promise<Command | undefined> {
  if (word === SERVE.name) return SERVE;
  const { COMMANDS } = await others();
  return COMMANDS.find(({ name }) => name === word);
}

async function help(word: string | undefined, process: CommandProcess): Promise<number> {
  const { COMMANDS, commandHelp, generalHelp } = await others();
  if (word === undefined || isHelp(word)) {
    process.writeOut(generalHelp(COMMANDS));
    return EXIT.ok;
  }
  const command = await findCommand(word);
  if (command === undefined) return await unknownCommand(word, process);
  process.writeOut(commandHelp(command));
  return EXIT.ok;
}

async function unknownCommand(word: string, process: CommandProcess): Promise<number> {
  const { COMMANDS } = await others();
  const shown = JSON.stringify(word);
  const names = COMMANDS.map(({ name }) => name);
  const hint = word.startsWith("-")
    ? `, options follow the command: larder ${names[0]} ${word}`
    : suggestion(word, names) || `, expected one of ${names.join(", ")}`;
  process.writeError(`larder: ${shown}: unknown command${hint}\n`);
  return EXIT.usage;
}

/** Prints a failure's message, or a bug's stack. */
function explain(error: unknown, process: CommandProcess): number {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) process.writeError(`larder: ${problem}\n`);
    return EXIT.usage;
  }
  const isBug = error instanceof Error && !(error instanceof Failure);
  const text = isBug ? error.stack ?? error.message : messageOf(error);
  process.writeError(`larder: ${text}\n`);
  return EXIT.failed;
}
