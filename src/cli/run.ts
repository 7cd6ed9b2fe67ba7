import denoJson from "../../deno.json" with { type: "json" };
import { Failure, messageOf } from "../base/failure.ts";
import { ConfigError } from "../config/config_error.ts";
import { suggestion } from "../base/nearest.ts";
import type { Command } from "./command.ts";
import { commandFirst } from "./command_first.ts";
import { COMMANDS } from "./commands.ts";
import { EXIT } from "../base/exit_codes.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { denoHost, harmlessHost, type Host } from "./host.ts";

/** Runs the command that `args` spell. Resolves to the exit status, when all output is out. */
export async function run(args: readonly string[], process: Host = denoHost()): Promise<number> {
  const host = harmlessHost(process);
  const [word, ...rest] = commandFirst(args);
  if (word === undefined) {
    host.writeError(generalHelp(COMMANDS));
    return EXIT.usage;
  }
  if (word === "--version" || word === "-V") {
    host.writeOut(`larder ${denoJson.version}\n`);
    return EXIT.ok;
  }
  if (word === "help" || isHelp(word)) return help(rest[0], host);

  const command = findCommand(word);
  if (command === undefined) return unknownCommand(word, host);
  if (rest.some(isHelp)) return help(word, host);
  try {
    return await command.run(rest, host);
  } catch (error) {
    return explain(error, host);
  }
}

function isHelp(word: string): boolean {
  return word === "--help" || word === "-h";
}

function findCommand(word: string): Command | undefined {
  return COMMANDS.find(({ name }) => name === word);
}

function help(word: string | undefined, host: Host): number {
  if (word === undefined || isHelp(word)) {
    host.writeOut(generalHelp(COMMANDS));
    return EXIT.ok;
  }
  const command = findCommand(word);
  if (command === undefined) return unknownCommand(word, host);
  host.writeOut(commandHelp(command));
  return EXIT.ok;
}

function unknownCommand(word: string, host: Host): number {
  const shown = JSON.stringify(word);
  const names = COMMANDS.map(({ name }) => name);
  const hint = word.startsWith("-")
    ? `, options follow the command: larder ${names[0]} ${word}`
    : suggestion(word, names) || `, expected one of ${names.join(", ")}`;
  host.writeError(`larder: ${shown}: unknown command${hint}\n`);
  return EXIT.usage;
}

/** Says what went wrong: a sentence for what is expected to happen, the stack for a bug. */
function explain(error: unknown, host: Host): number {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) host.writeError(`larder: ${problem}\n`);
    return EXIT.usage;
  }
  const isBug = error instanceof Error && !(error instanceof Failure);
  const text = isBug ? error.stack ?? error.message : messageOf(error);
  host.writeError(`larder: ${text}\n`);
  return EXIT.failed;
}
