import { parseArgs } from "node:util";
import { ConfigError } from "../config/config_error.ts";
import { suggestion } from "../base/nearest.ts";
import {
  type AnyOption,
  expectedInstead,
  type OptionTable,
  type Values,
} from "../config/kinds/option.ts";
import { readFound, shownGiven } from "../config/reading.ts";
import { type Environment, readEnvironment } from "../config/sources/environment.ts";
import {
  type Found,
  foundAs,
  givenText,
  ownSpellings,
  type Spelling,
  spellingsIn,
} from "../config/sources/found.ts";

/** What the words behind a command and the environment say. */
export interface Words<Table> {
  readonly flags: Values<Table>;
  /** The words that are no flags, in the order given. */
  readonly rest: readonly string[];
}

export interface WordsInputs {
  readonly args: readonly string[];
  readonly env: Environment;
  /** Throws when the file cannot be read. */
  readonly readTextFile: (path: string) => string;
}

/**
 * Reads a command's own flags: rows like those of the server's options, but in no configuration
 * file, and in the environment only where a row names its variable. Throws a `ConfigError` with
 * every problem at once.
 */
export function readWords<Table extends OptionTable>(
  table: Table,
  { args, env, readTextFile }: WordsInputs,
): Words<Table> {
  const { found, problems, rest } = readFlags(table, args);
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

/** For a command that takes nothing but flags. Throws a `ConfigError` for anything else. */
export function noOperands(rest: readonly string[]): void {
  const problems = rest.map((word) => `${JSON.stringify(word)}: unexpected argument`);
  if (problems.length > 0) throw new ConfigError(problems);
}

interface ReadFlags {
  readonly found: readonly Found[];
  readonly problems: string[];
  readonly rest: readonly string[];
}

function readFlags(table: OptionTable, args: readonly string[]): ReadFlags {
  const spellings = spellingsIn("flag", table);
  const types = [...spellings].map(([flag, spelling]) =>
    [flag.slice(2), { type: isSwitch(spelling) ? "boolean" : "string" }] as const
  );
  // It only tells the words apart: what is wrong with them is said here, as elsewhere.
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    strict: false,
    tokens: true,
  });
  const found: Found[] = [];
  const problems: string[] = [];
  const rest: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") rest.push(token.value);
    if (token.kind !== "option") continue;
    const { rawName, value, inlineValue } = token;
    const spelling = spellings.get(rawName);
    const denied = spellings.get(rawName.replace(/^--no-/, "--"));
    if (spelling === undefined && denied !== undefined && isSwitch(denied) && !inlineValue) {
      found.push(asFound(denied, rawName, "false"));
    } else if (spelling === undefined) {
      const hint = suggestion(rawName, ownSpellings(spellings.values(), "flag"));
      problems.push(`${rawName}: unknown flag${hint}`);
    } else if (isSwitch(spelling)) {
      found.push(asFound(spelling, rawName, value ?? "true"));
    } else if (value === undefined || (!inlineValue && value.startsWith("--"))) {
      const expected = spelling.isFile ? "a path" : expectedInstead(spelling.option.kind, "");
      problems.push(`${rawName}: got nothing, expected ${expected}`);
    } else found.push(asFound(spelling, rawName, value));
  }
  return { found, problems, rest };
}

function asFound(spelling: Spelling, name: string, value: string): Found {
  return foundAs(spelling, { from: "flag", name }, givenText(spelling, value), { spelled: name });
}

function variablesOf(table: OptionTable, env: Environment): readonly Found[] {
  const named = Object.entries(table).filter(([, { variable }]) => variable !== undefined);
  return readEnvironment(Object.fromEntries(named), env).found;
}

function givenTwice(option: AnyOption, found: readonly Found[]): string {
  const spellings = [...new Set(found.map(({ spelled }) => spelled))].join(" and ");
  const got = found.flatMap((one) => one.given.map((given) => shownGiven(option, one, given)));
  return `${spellings}: got ${got.join(" and ")}, expected only one`;
}

function isSwitch({ option, isFile }: Spelling): boolean {
  return option.kind.bare === "boolean" && !isFile;
}
