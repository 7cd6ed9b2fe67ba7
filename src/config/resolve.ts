import { messageOf } from "../base/failure.ts";
import { ConfigError } from "./config_error.ts";
import { findConfigFile } from "./find_config_file.ts";
import { type AnyOption, flagName, type OptionTable, type Values } from "./option.ts";
import { readFound, shownGiven } from "./reading.ts";
import type { Rule } from "./rules.ts";
import { readCredentials } from "./sources/credentials.ts";
import { type Environment, readEnvironment } from "./sources/environment.ts";
import { readFlags } from "./sources/flags.ts";
import type { Findings, Found, Source } from "./sources/found.ts";

/** Everything outside of the table that decides over settings. */
export interface Inputs {
  /** The words behind the command. */
  readonly args: readonly string[];
  readonly env: Environment;
  /** Throws when the file cannot be read. */
  readonly readTextFile: (path: string) => string;
  readonly fileExists: (path: string) => boolean;
  readonly hostname: () => string;
  readonly isTerminal: () => boolean;
}

/** Usable values for every row of a table. */
export interface Resolved<Table> {
  readonly settings: Values<Table>;
  readonly sources: { readonly [K in keyof Table]: Source };
  /** Former names that were used, one line each. */
  readonly warnings: readonly string[];
}

/**
 * Merges flags > environment > configuration file > credentials > defaults.
 *
 * Throws a `ConfigError` with every problem at once.
 */
export function resolve<Table extends OptionTable>(
  table: Table,
  inputs: Inputs,
  rules: readonly Rule<Values<Table>>[] = [],
): Resolved<Table> {
  const layers = readLayers(table, inputs);
  const draft: Draft = {
    values: {},
    sources: {},
    spelled: {},
    warnings: [],
    problems: layers.flatMap(({ problems }) => problems),
  };
  for (const [key, option] of Object.entries(table)) {
    const found = strongest(layers, key);
    if (found === undefined) {
      draft.spelled[key] = flagName(key);
      settleDefault(draft, table, key, inputs);
    } else if (!settle(draft, option, found, inputs)) {
      // Others are computed from it; what is wrong was said already.
      settleDefault({ ...draft, problems: [] }, table, key, inputs);
    }
  }

  const resolved = { ...draft, settings: draft.values } as unknown as Resolved<Table>;
  draft.problems.push(...brokenRules(rules, resolved.settings, draft));
  if (draft.problems.length > 0) throw new ConfigError(draft.problems);
  const { settings, sources, warnings } = resolved;
  return { settings, sources, warnings };
}

/** What is settled so far. */
interface Draft {
  readonly values: Record<string, unknown>;
  readonly sources: Record<string, Source>;
  /** How to call an option in a problem; lacks those whose given value cannot be used. */
  readonly spelled: Record<string, string>;
  readonly warnings: string[];
  readonly problems: string[];
}

/** What one source says of one option: at least one thing. */
type FoundTogether = readonly [Found, ...Found[]];

/** The sources in order of precedence. */
function readLayers(table: OptionTable, inputs: Inputs): readonly Findings[] {
  const { args, env, fileExists } = inputs;
  const flags = readFlags(table, args);
  const environment = readEnvironment(table, env);
  const file = findConfigFile(table, [...flags.found, ...environment.found], inputs);
  const credentials = readCredentials(table, env["CREDENTIALS_DIRECTORY"], fileExists);
  return [flags, environment, file, credentials];
}

function strongest(layers: readonly Findings[], key: string): FoundTogether | undefined {
  for (const layer of layers) {
    const [first, ...others] = layer.found.filter((found) => found.key === key);
    if (first !== undefined) return [first, ...others];
  }
  return undefined;
}

/** Takes over what was found, or notes what is wrong with it and says `false`. */
function settle(draft: Draft, option: AnyOption, found: FoundTogether, inputs: Inputs): boolean {
  const [{ key, source, spelled }] = found;
  const isList = option.kind.item !== undefined;
  const readings = found.flatMap((one) => readFound(option, one, inputs.readTextFile));
  const problems = readings.flatMap((reading) => "problem" in reading ? [reading.problem] : []);
  if (!isList && found.length > 1) problems.push(givenTwice(option, found));
  draft.problems.push(...problems);
  if (problems.length > 0) return false;

  const values = readings.flatMap((reading) => "value" in reading ? [reading.value] : []);
  draft.values[key] = isList ? values : values[0];
  draft.sources[key] = source;
  draft.spelled[key] = spelled;
  for (const one of found) {
    if (one.renamed !== undefined) draft.warnings.push(`${one.spelled} is now ${one.renamed}`);
  }
  return true;
}

function givenTwice(option: AnyOption, found: readonly Found[]): string {
  const spellings = [...new Set(found.map(({ spelled }) => spelled))].join(" and ");
  const got = found.flatMap((one) => one.given.map((given) => shownGiven(option, one, given)));
  return `${spellings}: got ${got.join(" and ")}, expected only one`;
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
      textOf: (other) => table[other]?.kind.print(draft.values[other]) ?? "",
    });
    shown = JSON.stringify(option.kind.print(value));
    option.kind.parse(option.kind.print(value));
    draft.values[key] = value;
  } catch (error) {
    const problem = `${flagName(key)}: not set, and its default would be ${shown}`;
    draft.problems.push(`${problem}, expected ${messageOf(error)}`);
  }
}

function brokenRules<S>(rules: readonly Rule<S>[], settings: S, { spelled }: Draft): string[] {
  return rules.flatMap(({ about, problem }) => {
    if (about.some((key) => spelled[key] === undefined)) return [];
    const broken = problem(settings);
    return broken === undefined ? [] : [`${spelled[about[0]]}: ${broken}`];
  });
}
