import { ConfigError } from "./config_error.ts";
import { type ConfigFileInputs, findConfigFile, unreadFile } from "./find_config_file.ts";
import { checkForeign, type ForeignTable } from "./sources/foreign.ts";
import {
  type AnyOption,
  expectationOf,
  flagName,
  type OptionTable,
  type Values,
} from "./kinds/option.ts";
import { givenTwice, readFound } from "./reading.ts";
import type { Rule } from "./rules.ts";
import { readCredentials, readEnvironment, unknownVariables } from "./sources/environment.ts";
import { readFlags, unexpectedArguments } from "./sources/flags.ts";
import type { Findings, FoundOption, SettingSource } from "./sources/found.ts";

/** All inputs besides the table. */
export interface Inputs extends ConfigFileInputs {
  /** The arguments behind the command. */
  readonly args: readonly string[];
  readonly hostname: () => string;
  readonly isTerminal: () => boolean;
}

/** Valid values for every row of a table. */
export interface Resolved<Table> {
  readonly settings: Values<Table>;
  readonly sources: { readonly [K in keyof Table]: SettingSource };
  /** One line for each suspicious setting. */
  readonly warnings: readonly string[];
}

/** Checks beyond each single value. */
export interface Checks<S> {
  readonly rules?: readonly Rule<S>[];
  /** Rules whose problems are warnings, for options that differ from their defaults. */
  readonly noEffect?: readonly Rule<S>[];
  /** Settings of ncps without a counterpart. */
  readonly foreign?: ForeignTable;
}

/**
 * Merges flags > environment > configuration file > credentials of systemd > defaults.
 *
 * Throws a `ConfigError` with every problem at once.
 */
export function resolve<Table extends OptionTable>(
  table: Table,
  inputs: Inputs,
  { rules = [], noEffect = [], foreign = {} }: Checks<Values<Table>> = {},
): Resolved<Table> {
  const layers = readLayers({ ...foreign, ...table }, inputs);
  const judged = checkForeign(
    foreign,
    Object.keys(foreign).flatMap((key) => strongest(layers, key)),
  );
  const draft: Draft = {
    values: {},
    sources: {},
    spelled: {},
    warnings: [
      ...layers.flatMap(({ warnings = [] }) => warnings),
      ...judged.warnings,
      ...unknownVariables(table, foreign, inputs.env),
    ],
    problems: [...layers.flatMap(({ problems }) => problems), ...judged.problems],
  };
  for (const [key, option] of Object.entries(table)) {
    const [found = [], ...weaker] = foundIn(layers, key);
    if (found.length === 0) draft.spelled[key] = flagName(key);
    // Other defaults derive from the value; its own problem is already noted.
    const isSettled = found.length > 0 && settle(draft, option, found, inputs);
    if (!isSettled) {
      const problems = found.length === 0 ? draft.problems : [];
      settleDefault({ ...draft, problems }, table, key, inputs);
    }
    for (const overridden of weaker) check(draft, option, overridden, inputs);
  }

  const resolved = { ...draft, settings: draft.values } as unknown as Resolved<Table>;
  draft.problems.push(...brokenRules(rules, resolved.settings, draft));
  const chosen = noEffect.filter(({ about: [key] }) => isChosen(table[key], draft, key));
  draft.warnings.push(...brokenRules(chosen, resolved.settings, draft));
  if (draft.problems.length > 0) throw new ConfigError(draft.problems);
  const { settings, sources, warnings } = resolved;
  return { settings, sources, warnings };
}

/** The state of resolving. */
interface Draft {
  readonly values: Record<string, unknown>;
  readonly sources: Record<string, SettingSource>;
  /** The spelling of each option for problems; without those that have an invalid value. */
  readonly spelled: Record<string, string>;
  readonly warnings: string[];
  readonly problems: string[];
}

/** The sources in order of precedence. */
function readLayers(table: OptionTable, inputs: Inputs): readonly Findings[] {
  const { found, problems, rest } = readFlags(table, inputs.args);
  const flags = { found, problems: [...problems, ...unexpectedArguments(rest)] };
  const environment = readEnvironment(table, inputs.env);
  const named = [...flags.found, ...environment.found];
  const file = findConfigFile(table, named, inputs);
  const credentials = readCredentials(table, inputs);
  return [flags, environment, { ...file, warnings: unreadFile(named, inputs) }, credentials];
}

/** The findings of each source that names an option, the strongest first. */
function foundIn(layers: readonly Findings[], key: string): readonly (readonly FoundOption[])[] {
  return layers.map(({ found }) => found.filter((one) => one.key === key))
    .filter((found) => found.length > 0);
}

function strongest(layers: readonly Findings[], key: string): readonly FoundOption[] {
  return foundIn(layers, key)[0] ?? [];
}

/** Takes over the found value. Notes the problem and returns false if it is invalid. */
function settle(
  draft: Draft,
  option: AnyOption,
  found: readonly FoundOption[],
  inputs: Inputs,
): boolean {
  const values = check(draft, option, found, inputs);
  const [first] = found;
  if (values === undefined || first === undefined) return false;
  draft.values[first.key] = option.kind.item === undefined ? values[0] : values;
  draft.sources[first.key] = first.source;
  draft.spelled[first.key] = first.spelled;
  return true;
}

/** The values of one source; `undefined` after noting a problem. */
function check(
  draft: Draft,
  option: AnyOption,
  found: readonly FoundOption[],
  inputs: Inputs,
): readonly unknown[] | undefined {
  const used = spelledOnce(option, found);
  const readings = (used ?? found).flatMap((one) => readFound(option, one, inputs.readTextFile));
  const problems = readings.flatMap((reading) => "problem" in reading ? [reading.problem] : []);
  if (used === undefined) problems.push(givenTwice(option, found));
  draft.problems.push(...problems);
  if (problems.length > 0) return undefined;
  return readings.flatMap((reading) => "value" in reading ? [reading.value] : []);
}

/**
 * The findings of one source for an option, in one spelling; `undefined` if spellings differ. A
 * list joins all values of one spelling.
 */
function spelledOnce(
  option: AnyOption,
  found: readonly FoundOption[],
): readonly FoundOption[] | undefined {
  const isList = option.kind.item !== undefined;
  const [first = [], ...others] = isList
    ? [...Map.groupBy(found, ({ spelled }) => spelled).values()]
    : found.map((one) => [one]);
  const said = (ones: readonly FoundOption[]) =>
    JSON.stringify(ones.flatMap(({ given, isFile = false }) => [isFile, ...given.map(textOf)]));
  return others.every((other) => said(other) === said(first)) ? first : undefined;
}

function textOf({ text }: { readonly text: string }): string {
  return text;
}

function settleDefault(draft: Draft, table: OptionTable, key: string, inputs: Inputs): void {
  const option = table[key];
  draft.sources[key] = { from: "default", name: "" };
  draft.values[key] = option?.default;
  if (option?.computed === undefined) return;
  let shown = "nothing";
  try {
    const value = option.computed({
      variable: (name) => inputs.env[name] || undefined,
      hostname: inputs.hostname,
      isTerminal: inputs.isTerminal,
      cores: () => navigator.hardwareConcurrency,
      textOf: (other) => table[other]?.kind.print(draft.values[other]) ?? "",
    });
    shown = JSON.stringify(option.kind.print(value));
    option.kind.parse(option.kind.print(value));
    draft.values[key] = value;
  } catch (error) {
    const problem = `${flagName(key)}: not set, and its default would be ${shown}`;
    draft.problems.push(`${problem}, expected ${expectationOf(error)}`);
  }
}

/** True for a given value that differs from the default. */
function isChosen(option: AnyOption | undefined, draft: Draft, key: string): boolean {
  const { kind, default: standard } = option ?? {};
  if (kind === undefined || draft.sources[key]?.from === "default") return false;
  return standard === undefined || kind.print(draft.values[key]) !== kind.print(standard);
}

function brokenRules<S>(rules: readonly Rule<S>[], settings: S, { spelled }: Draft): string[] {
  return rules.flatMap(({ about, problem }) => {
    if (about.some((key) => spelled[key] === undefined)) return [];
    const broken = problem(settings);
    return broken === undefined ? [] : [`${spelled[about[0]]}: ${broken}`];
  });
}
