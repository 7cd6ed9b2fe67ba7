import denoJson from "../../deno.json" with { type: "json" };
import { Failure, messageOf } from "../base/failure.ts";
import { ConfigError } from "../config/config_error.ts";
import { suggestion } from "../base/nearest.ts";
import type { Command } from "./command.ts";
import { EXIT } from "../base/exit_codes.ts";
import { type CommandProcess, denoProcess, sanitizedProcess } from "./command_process.ts";
import { SERVE } from "./serve.ts";
import { OPTIONS } from "../config/options.ts";
import { NCPS_ONLY } from "../config/options/ncps_only.ts";
import { splitArguments } from "../config/sources/flags.ts";
import { refilled, wrapped } from "../base/wrapped.ts";

/** Runs the command in `args`. Resolves to the exit status once all output is written. */
export async function run(args: readonly string[], real = denoProcess()): Promise<number> {
  const process = sanitizedProcess(real);
  const [given, ...rest] = commandFirst(args);
  if (given === undefined) {
    const { COMMANDS, generalHelp } = await others();
    process.writeError(generalHelp(COMMANDS));
    return EXIT.usage;
  }
  if (given === "--version" || given === "-V" || given === "-v") {
    process.writeOut(`larder ${denoJson.version}\n`);
    return EXIT.ok;
  }
  if (given === "help" || isHelp(given)) return await help(rest[0], process);

  const command = await findCommand(given);
  if (command === undefined) return await unknownCommand(given, process);
  if (command.runsNix !== true) process.giveUpRun();
  if (rest.some(isHelp)) return await help(given, process);
  try {
    return await command.run(rest, command.prose === true ? proseProcess(rest, process) : process);
  } catch (error) {
    return explain(error, process);
  }
}

/** What the command says to people fits their terminal; JSON stays as it is. */
function proseProcess(args: readonly string[], process: CommandProcess): CommandProcess {
  if (args.some((word) => /^--json(=|$)/.test(word))) return process;
  const writeOut = (text: string) => process.writeOut(wrapped(text, process.screenSize().columns));
  return { ...process, writeOut };
}

function isHelp(given: string): boolean {
  return given === "--help" || given === "-h";
}

/** Loads the modules that `serve` does not need: a server would keep them in memory. */
async function others() {
  const [{ COMMANDS }, help] = await Promise.all([commands(), helpTexts()]);
  return { COMMANDS, ...help };
}

// Deno parses what a literal import names, even where it never runs, and that delays the start of
// `serve`. So larder loads these by name, and scripts/compile.ts includes both.
const FOLDER = ".";

function commands(): Promise<typeof import("./commands.ts")> {
  return import(`${FOLDER}/commands.ts`);
}

function helpTexts(): Promise<typeof import("./help.ts")> {
  return import(`${FOLDER}/help.ts`);
}

async function findCommand(given: string): Promise<Command | undefined> {
  if (given === SERVE.name) return SERVE;
  const { COMMANDS } = await others();
  return COMMANDS.find(({ name }) => name === given);
}

async function help(given: string | undefined, process: CommandProcess): Promise<number> {
  const { COMMANDS, commandHelp, generalHelp } = await others();
  const { columns } = process.screenSize();
  if (given === undefined || isHelp(given)) {
    process.writeOut(refilled(generalHelp(COMMANDS), columns));
    return EXIT.ok;
  }
  const command = await findCommand(given);
  if (command === undefined) return await unknownCommand(given, process);
  process.writeOut(refilled(commandHelp(command, columns), columns));
  return EXIT.ok;
}

async function unknownCommand(given: string, process: CommandProcess): Promise<number> {
  const { COMMANDS } = await others();
  const shown = JSON.stringify(given);
  const names = COMMANDS.map(({ name }) => name);
  const hint = given.startsWith("-")
    ? `, options follow the command: larder ${names[0]} ${given}`
    : suggestion(given, names) || `, expected one of ${names.join(", ")}`;
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

/**
 * The arguments with the command first: ncps allows some server flags before it. Unchanged if
 * another argument precedes the command.
 */
function commandFirst(args: readonly string[]): readonly string[] {
  const before: string[] = [];
  for (const { texts, flag } of splitArguments({ ...OPTIONS, ...NCPS_ONLY }, args)) {
    const [first = ""] = texts;
    if (first === "--" || (flag !== undefined && flag.spelling === undefined)) return args;
    if (flag === undefined) return [first, ...before, ...args.slice(before.length + 1)];
    before.push(...texts);
  }
  return args;
}
