import { suggestion } from "../../base/nearest.ts";
import type { Kind, OptionTable } from "../kinds/option.ts";
import { type ConfigText, isYamlPath } from "./config_text.ts";
import {
  type Findings,
  foundAs,
  type FoundOption,
  givenText,
  type GivenValue,
  ownSpellings,
  type Spelling,
  spellingsIn,
} from "./found.ts";

/** The settings of a configuration file. A file of invalid syntax is one problem. */
export function readConfigFile(table: OptionTable, path: string, text: ConfigText): Findings {
  if (!("value" in text)) {
    const format = isYamlPath(path) ? "YAML" : "TOML";
    const { line, column, reason } = text;
    return { found: [], problems: [`${path}:${line}:${column}: not ${format}: ${reason}`] };
  }
  // An empty YAML file is null.
  const value = text.value ?? {};
  if (isTable(value)) return findingsIn(table, path, flatten(value));
  const got = Array.isArray(value) ? "a list" : `a ${typeof value}`;
  return { found: [], problems: [`${path}: got ${got}, expected keys with values`] };
}

function findingsIn(
  table: OptionTable,
  path: string,
  values: readonly (readonly [string, unknown])[],
): Findings {
  const spellings = spellingsIn("key", table);
  const found: FoundOption[] = [];
  const problems: string[] = [];
  for (const [key, value] of values) {
    const spelling = spellings.get(key);
    if (value === null && [...spellings.keys()].some((one) => one.startsWith(`${key}.`))) {
      // YAML's notation for an empty table.
      continue;
    }
    if (spelling === undefined) {
      const hint = suggestion(key, ownSpellings(spellings.values(), "key"));
      problems.push(`${path}: ${key}: unknown key${hint}`);
    } else if (!isUnset(value)) {
      const source = { from: "file", name: path } as const;
      found.push(foundAs(spelling, source, givenIn(spelling, value), `${path}: ${key}`));
    }
  }
  return { found, problems };
}

/** `[cache]` with `priority = 3` becomes `cache.priority`. */
function flatten(table: object, prefix = ""): readonly (readonly [string, unknown])[] {
  return Object.entries(table).flatMap(([name, value]) =>
    isTable(value) ? flatten(value, `${prefix}${name}.`) : [[prefix + name, value] as const]
  );
}

function isTable(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    !(value instanceof Date);
}

/** True for a value that templates leave empty, like an empty variable. */
function isUnset(value: unknown): boolean {
  return value === "" || value === null;
}

function givenIn(spelling: Spelling, value: unknown): readonly GivenValue[] {
  const { kind } = spelling.option;
  if (typeof value === "string") return givenText(spelling, value);
  if (kind.item === undefined) return [givenLeaf(kind, value)];
  const { item } = kind;
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  return items.map((leaf) => givenLeaf(item, leaf));
}

function givenLeaf(kind: Kind<unknown>, value: unknown): GivenValue {
  if (typeof value === "string") return { text: value, original: value };
  const type: string = typeof value;
  const text = type === "object" ? JSON.stringify(value) : String(value);
  if (type === kind.bare) return { text, original: value };
  const mistyped = kind.bare === undefined ? "a string in quotes" : `a ${kind.bare}`;
  return { text, original: value, mistyped };
}
