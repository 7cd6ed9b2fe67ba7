import { ConfigError } from "../config/config_error.ts";
import type { OptionTable, Values } from "../config/kinds/option.ts";
import { givenTwice, readFound } from "../config/reading.ts";
import { type Environment, readEnvironment } from "../config/sources/environment.ts";
import { readFlags, unexpectedArguments } from "../config/sources/flags.ts";
import type { FoundOption } from "../config/sources/found.ts";

/** The parsed arguments and environment of a command. */
export interface ParsedArguments<Table> {
  readonly flags: Values<Table>;
  /** The arguments that are no flags, in order. */
  readonly rest: readonly string[];
}

export interface ArgumentInputs {
  readonly args: readonly string[];
  readonly env: Environment;
  /** Throws if the file is unreadable. */
  readonly readTextFile: (path: string) => string;
}

/**
 * Parses a command's own flags: rows like the server's options, but not in a configuration file,
 * and in the environment only under an explicit name. Throws a `ConfigError` with all problems at
 * once.
 */
export function parseArguments<Table extends OptionTable>(
  table: Table,
  { args, env, readTextFile }: ArgumentInputs,
): ParsedArguments<Table> {
  const { found, rest, ...read } = readFlags(table, args);
  const problems = [...read.problems];
  const fromEnvironment = variablesOf(table, env);
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(table)) {
    values[key] = option.default;
    const flags = found.filter((one) => one.key === key);
    const given = flags.length > 0 ? flags : fromEnvironment.filter((one) => one.key === key);
    if (given.length > 1) problems.push(givenTwice(option, given));
    for (const one of given) {
      for (const reading of readFound(option, one, readTextFile)) {
        if ("problem" in reading) problems.push(reading.problem);
        else values[key] = reading.value;
      }
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return { flags: values as Values<Table>, rest };
}

/** Throws a `ConfigError` if there are operands. */
export function noOperands(rest: readonly string[]): void {
  const problems = unexpectedArguments(rest);
  if (problems.length > 0) throw new ConfigError(problems);
}

function variablesOf(table: OptionTable, env: Environment): readonly FoundOption[] {
  const named = Object.entries(table).filter(([, { variable }]) => variable !== undefined);
  return readEnvironment(Object.fromEntries(named), env).found;
}
