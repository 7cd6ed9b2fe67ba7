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

/**
 * Parses flags anywhere among the arguments, up to `--`.
 *
 * `parseArgs` of node:util does not fit: it takes `--next-flag` as the value of a flag without one,
 * and cannot assign values of unknown flags.
 */
export function readFlags(table: OptionTable, args: readonly string[]): FlagFindings {
  const flags = spellingsIn("flag", table);
  const found: FoundOption[] = [];
  const problems: string[] = [];
  const rest: string[] = [];

  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") {
      rest.push(...args.slice(at + 1));
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      rest.push(word);
      continue;
    }
    const next = args[at + 1];
    const flag = splitFlag(word);
    const read = readFlag(flag, next, flags);
    if ("problem" in read) problems.push(read.problem);
    else found.push(read.found);
    if (read.usesNext) at++;
  }
  return { found, problems, rest };
}

/** A problem for each unexpected argument. */
export function unexpectedArguments(rest: readonly string[]): readonly string[] {
  return rest.map((word) => `${JSON.stringify(word)}: unexpected argument`);
}

interface Flag {
  readonly name: string;
  /** The text behind `=`. */
  readonly inline?: string;
}

type Read =
  & { readonly usesNext: boolean }
  & ({ readonly found: FoundOption } | { problem: string });

function splitFlag(word: string): Flag {
  const at = word.indexOf("=");
  return at < 0 ? { name: word } : { name: word.slice(0, at), inline: word.slice(at + 1) };
}

function readFlag(
  flag: Flag,
  next: string | undefined,
  flags: ReadonlyMap<string, Spelling>,
): Read {
  const spelling = flags.get(flag.name);
  if (spelling === undefined) return readUnlisted(flag, next, flags);

  if (isSwitch(spelling)) {
    return { usesNext: false, found: found(spelling, flag.name, flag.inline ?? "true") };
  }
  if (flag.inline !== undefined) {
    return { usesNext: false, found: found(spelling, flag.name, flag.inline) };
  }
  if (next === undefined || next.startsWith("--")) {
    const { kind } = spelling.option;
    const expected = spelling.isFile ? "a path" : expectedInstead(kind.item ?? kind, "");
    return { usesNext: false, problem: `${flag.name}: got nothing, expected ${expected}` };
  }
  return { usesNext: true, found: found(spelling, flag.name, next) };
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
      return { usesNext: false, found: found(denied, flag.name, "false") };
    }
    const got = JSON.stringify(flag.inline);
    return { usesNext: false, problem: `${flag.name}: got ${got}, expected no value` };
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
