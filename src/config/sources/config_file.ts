import { parse as parseToml, TomlError } from "smol-toml";
import { messageOf } from "../../base/failure.ts";
import { suggestion } from "../nearest.ts";
import type { Kind, OptionTable } from "../option.ts";
import {
  type Findings,
  type Found,
  foundAs,
  type Given,
  givenText,
  type Spelling,
  spellingsOf,
} from "./found.ts";

/** What a configuration file says. A file that is no TOML is one problem. */
export function readConfigFile(table: OptionTable, path: string, text: string): Findings {
  try {
    return findingsIn(table, path, flatten(parseToml(text)));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // Only the first line: the others quote the file, which may hold secrets.
    const [what = ""] = messageOf(error).replace(/^Invalid TOML document: /, "").split("\n");
    return { found: [], problems: [`${path}:${error.line}:${error.column}: not TOML: ${what}`] };
  }
}

function findingsIn(
  table: OptionTable,
  path: string,
  values: ReadonlyMap<string, unknown>,
): Findings {
  const spellings = new Map(
    spellingsOf(table).filter(({ option }) => !option.notInFile)
      .map((spelling) => [spelling.written, spelling]),
  );
  const found: Found[] = [];
  const problems: string[] = [];
  for (const [key, value] of values) {
    const spelling = spellings.get(key);
    if (spelling === undefined) {
      problems.push(`${path}: ${key}: unknown key${suggestion(key, spellings.keys())}`);
    } else {
      const spell = (written: string) => `${path}: ${written}`;
      const source = { from: "file", name: path } as const;
      found.push(foundAs(spelling, source, givenToml(spelling, value), spell));
    }
  }
  return { found, problems };
}

/** `[cache]` with `priority = 3` becomes `cache.priority`. */
function flatten(table: object, prefix = ""): Map<string, unknown> {
  const flat = new Map<string, unknown>();
  for (const [name, value] of Object.entries(table)) {
    const key = prefix + name;
    if (!isTable(value)) flat.set(key, value);
    else for (const [inner, leaf] of flatten(value, `${key}.`)) flat.set(inner, leaf);
  }
  return flat;
}

function isTable(value: unknown): value is object {
  return typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);
}

function givenToml(spelling: Spelling, value: unknown): readonly Given[] {
  const { kind } = spelling.option;
  if (typeof value === "string") return givenText(spelling, value);
  if (kind.item === undefined || spelling.isFile) return [givenLeaf(kind, value)];
  const { item } = kind;
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  return items.map((leaf) => givenLeaf(item, leaf));
}

function givenLeaf(kind: Kind<unknown>, value: unknown): Given {
  if (typeof value === "string") return { text: value, original: value };
  const type: string = typeof value;
  const text = type === "object" ? JSON.stringify(value) : String(value);
  if (type === kind.bare) return { text, original: value };
  const mistyped = kind.bare === undefined ? "a string in quotes" : `a ${kind.bare}`;
  return { text, original: value, mistyped };
}
