import { ConfigError } from "./config_error.ts";
import { type AnyOption, flagName, type OptionTable } from "./kinds/option.ts";
import { OPTIONS } from "./options.ts";
import { NCPS_ONLY } from "./options/ncps_only.ts";
import { readFound } from "./reading.ts";
import { commented, type EntryWriter, tomlFile, tomlOf } from "./render_toml.ts";
import { readConfigFile } from "./sources/config_file.ts";
import { isYamlPath, loadYamlParser, parseTomlText } from "./sources/config_text.ts";
import { type Environment, readEnvironment } from "./sources/environment.ts";
import { checkForeign } from "./sources/foreign.ts";
import type { FoundOption } from "./sources/found.ts";

/** The configuration file of an ncps, and the variables that it runs with. */
export interface NcpsSettings {
  readonly path: string;
  readonly text: string;
  readonly env: Environment;
}

/** The same settings for larder. */
export interface ConvertedSettings {
  /** A configuration file with a comment for every entry. */
  readonly toml: string;
  /** Settings that larder cannot have, one line each. */
  readonly problems: readonly string[];
}

/** The defaults of ncps that are not larder's, in the words of a configuration file. */
const OTHER_DEFAULTS: readonly (readonly [key: string, value: string, why: string])[] = [
  ["cache.lru-schedule-timezone", "Local", "ncps takes the machine's time zone; larder takes UTC"],
];

/** larder refuses the file of ncps, and makes db.sqlite in its storage by itself. */
const FOREIGN_DATABASE = "It belongs to ncps: larder makes one of its own in its storage";

/**
 * The settings of an ncps as a configuration file of larder. As in ncps, the file wins over the
 * variables. Throws a ConfigError for a file that is none.
 */
export async function convertNcps({ path, text, env }: NcpsSettings): Promise<ConvertedSettings> {
  const all: OptionTable = { ...NCPS_ONLY, ...OPTIONS };
  const parse = isYamlPath(path) ? await loadYamlParser() : parseTomlText;
  const file = readConfigFile(all, path, parse(text));
  if (file.problems.length > 0 && file.found.length === 0) throw new ConfigError(file.problems);
  const inFile = new Set(file.found.map(({ key }) => key));
  const variables = readEnvironment(all, env).found.filter(({ key }) => !inFile.has(key));
  const found = [...file.found, ...variables].filter(({ key }) => !all[key]?.notInFile);
  const entries: (readonly [string, EntryWriter])[] = [];
  const problems = [...file.problems];
  for (const [key, option] of Object.entries<AnyOption>(OPTIONS)) {
    const [first, ...others] = found.filter((one) => one.key === key);
    if (first === undefined) continue;
    const spelled = [first, ...others].map((one) => one.spelled).join(" and ");
    const { entry, problem } = entryOf(option, first, spelled);
    entries.push([key, entry]);
    problems.push(...problem);
  }
  entries.push(...otherDefaults(new Set(found.map(({ key }) => key))));
  const foreign = checkForeign(NCPS_ONLY, found.filter(({ key }) => Object.hasOwn(NCPS_ONLY, key)));
  const left = [...foreign.problems, ...foreign.warnings, ...file.problems];
  const about = [
    `The settings of ncps in ${path} and its environment, for larder.`,
    ...left.length === 0 ? [] : ["", "Left out:"],
    ...left.map((line) => `* ${line}`),
  ];
  return {
    toml: tomlFile(about.join("\n"), entries),
    problems: [...problems, ...foreign.problems],
  };
}

interface Converted {
  readonly entry: EntryWriter;
  readonly problem: readonly string[];
}

function entryOf(option: AnyOption, found: FoundOption, spelled: string): Converted {
  const comments = [option.help, `From ${spelled}`];
  if (option.secret) return secretEntry(comments, found);
  const readings = readFound(option, found, () => "");
  const problem = readings.flatMap((reading) => "problem" in reading ? [reading.problem] : []);
  if (problem.length > 0) {
    const entry: EntryWriter = (name) => commented(...comments, ...problem, `${name} =`);
    return { entry, problem };
  }
  const values = readings.flatMap((reading) => "value" in reading ? [reading.value] : []);
  if (found.key === "cache.database-url" && found.given[0]?.text.startsWith("sqlite:")) {
    const entry: EntryWriter = (name) => commented(...comments, FOREIGN_DATABASE, `${name} =`);
    return { entry, problem: [] };
  }
  const toml = tomlOf(option, option.kind.item === undefined ? values[0] : values);
  if (hidesMore(option, values)) comments.push("Give its password with --netrc-file");
  return { entry: (name) => `${commented(...comments)}${name} = ${toml}\n`, problem };
}

/** A secret stays out of the text. Without its file larder does not start, so nothing is open. */
function secretEntry(comments: readonly string[], { key, given, isFile }: FoundOption): Converted {
  const path = isFile ? given[0]?.text : `/etc/larder/${key.replaceAll(".", "-")}`;
  const todo = isFile ? [] : ["Put the secret into this file"];
  const line = (name: string) => `${name}-file = ${JSON.stringify(path)}\n`;
  return { entry: (name) => commented(...comments, ...todo) + line(name), problem: [] };
}

function hidesMore({ kind }: AnyOption, values: readonly unknown[]): boolean {
  const { redact, print } = kind.item ?? kind;
  return redact !== undefined && values.some((value) => redact(print(value)) !== print(value));
}

/** Entries that make larder behave as ncps does without them. */
function otherDefaults(given: ReadonlySet<string>): readonly (readonly [string, EntryWriter])[] {
  return OTHER_DEFAULTS.filter(([key]) => !given.has(key) && given.has("cache.lru-schedule"))
    .map(([key, value, why]) => [
      key,
      (name) => `${commented(`${why} (${flagName(key)})`)}${name} = ${JSON.stringify(value)}\n`,
    ]);
}
