import { suggestion } from "../../base/nearest.ts";
import { expectedInstead, type OptionTable } from "../kinds/option.ts";
import {
  type Findings,
  foundAs,
  type FoundOption,
  givenText,
  ownSpellings,
  type Spelling,
  spellingsIn,
} from "./found.ts";

/** The parsed arguments of a command. */
export interface FlagFindings extends Findings {
  /** The arguments that are no flags, in order. */
  readonly rest: readonly string[];
}

/** An operand, a flag with its value, or `--` with all operands behind it. */
export interface Argument {
  /** As written: a value behind a blank is a text of its own. */
  readonly texts: readonly string[];
  /** Absent for operands. */
  readonly flag?: ReadFlag;
}

/** The value of a flag, or its problem. An unknown flag has no spelling. */
export type ReadFlag =
  | { readonly spelling: Spelling; readonly found: FoundOption }
  | { readonly spelling?: Spelling; readonly problem: string };

/** Parses flags anywhere among the arguments, up to `--`. */
export function readFlags(table: OptionTable, args: readonly string[]): FlagFindings {
  const found: FoundOption[] = [];
  const problems: string[] = [];
  const rest: string[] = [];
  for (const { texts, flag } of splitArguments(table, args)) {
    if (flag === undefined) rest.push(...texts[0] === "--" ? texts.slice(1) : texts);
    else if ("found" in flag) found.push(flag.found);
    else problems.push(flag.problem);
  }
  return { found, problems, rest };
}

/**
 * Splits arguments into operands and flags with their values.
 *
 * `parseArgs` of node:util does not fit: it takes `--next-flag` as the value of a flag without one,
 * and cannot assign values of unknown flags.
 */
export function* splitArguments(
  table: OptionTable,
  args: readonly string[],
): Generator<Argument, void> {
  const flags = spellingsIn("flag", table);
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--") return yield { texts: args.slice(at) };
    if (!arg.startsWith("-") || arg === "-") {
      yield { texts: [arg] };
      continue;
    }
    const { usesNext, ...flag } = readFlag(splitFlag(arg), args[at + 1], flags);
    const texts = args.slice(at, usesNext ? at + 2 : at + 1);
    yield { texts, flag };
    at += texts.length - 1;
  }
}

/** A problem for each unexpected argument. */
export function unexpectedArguments(rest: readonly string[]): readonly string[] {
  return rest.map((arg) => `${JSON.stringify(arg)}: unexpected argument`);
}

interface Flag {
  readonly name: string;
  /** The text behind `=`. */
  readonly inline?: string;
}

type Read = ReadFlag & { readonly usesNext: boolean };

function splitFlag(arg: string): Flag {
  const at = arg.indexOf("=");
  return at < 0 ? { name: arg } : { name: arg.slice(0, at), inline: arg.slice(at + 1) };
}

function readFlag(
  flag: Flag,
  next: string | undefined,
  flags: ReadonlyMap<string, Spelling>,
): Read {
  const spelling = flags.get(flag.name);
  if (spelling === undefined) return readUnlisted(flag, next, flags);

  if (isSwitch(spelling)) {
    return { spelling, usesNext: false, found: found(spelling, flag.name, flag.inline ?? "true") };
  }
  if (flag.inline !== undefined) {
    return { spelling, usesNext: false, found: found(spelling, flag.name, flag.inline) };
  }
  if (next === undefined || next.startsWith("--")) {
    const { kind } = spelling.option;
    const expected = spelling.isFile ? "a path" : expectedInstead(kind.item ?? kind, "");
    const problem = `${flag.name}: got nothing, expected ${expected}`;
    return { spelling, usesNext: false, problem };
  }
  return { spelling, usesNext: true, found: found(spelling, flag.name, next) };
}

/** Parses `--no-x`, or reports an unknown flag. */
function readUnlisted(
  flag: Flag,
  next: string | undefined,
  flags: ReadonlyMap<string, Spelling>,
): Read {
  const denied = flag.name.startsWith("--no-") ? flags.get(`--${flag.name.slice(5)}`) : undefined;
  if (denied !== undefined && isSwitch(denied)) {
    if (flag.inline === undefined) {
      return { spelling: denied, usesNext: false, found: found(denied, flag.name, "false") };
    }
    const got = JSON.stringify(flag.inline);
    const problem = `${flag.name}: got ${got}, expected no value`;
    return { spelling: denied, usesNext: false, problem };
  }
  const problem = `${flag.name}: unknown flag${
    suggestion(flag.name, ownSpellings(flags.values(), "flag"))
  }`;
  const usesNext = flag.inline === undefined && next !== undefined && !next.startsWith("-");
  return { usesNext, problem };
}

function found(spelling: Spelling, name: string, value: string): FoundOption {
  return foundAs(spelling, { from: "flag", name }, givenText(spelling, value));
}

function isSwitch({ option, isFile }: Spelling): boolean {
  return option.kind.bare === "boolean" && !isFile;
}
