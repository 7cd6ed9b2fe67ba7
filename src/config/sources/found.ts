import { splitList } from "../kinds/list.ts";
import {
  type AnyOption,
  type Names,
  namesOf,
  type OptionTable,
  variableFor,
} from "../kinds/option.ts";

/** Where a value came from. `name` is the flag, the variable or the path of the file. */
export interface Source {
  readonly from: "flag" | "environment" | "file" | "default";
  readonly name: string;
}

/** One value as it was written; `original` is what a problem shows of it, as JSON. */
export interface Given {
  readonly text: string;
  readonly original: unknown;
  /** What was expected, where the type is not one that the kind accepts. */
  readonly mistyped?: string;
}

/** What one source says about one option. */
export interface Found {
  readonly key: string;
  readonly source: Source;
  /** How the user spelled the option: flag, variable, or `FILE: key`. */
  readonly spelled: string;
  /** One value; any number for a list. */
  readonly given: readonly Given[];
  /** The values are paths of files that hold the real ones. */
  readonly isFile?: true;
}

/** All that one source says. */
export interface Findings {
  readonly found: readonly Found[];
  readonly problems: readonly string[];
  readonly warnings?: readonly string[];
}

/** Names under which an option can be given: its own, and those of ncps. */
export interface Spelling {
  readonly key: string;
  readonly option: AnyOption;
  readonly names: Names;
  /** The names of the option's own row. */
  readonly isOwn?: true;
  /** The value is the path of a file that holds the real one. */
  readonly isFile?: true;
}

/** Every spelling of a table, with those that name the file of a secret. */
export function spellingsOf(table: OptionTable): readonly Spelling[] {
  return Object.entries(table).flatMap(([key, option]) => {
    const own = ownNames(key, option);
    const spellings: readonly Spelling[] = [
      { key, option, names: own, isOwn: true },
      ...(option.also ?? []).map((names) => ({ key, option, names })),
    ];
    return option.secret ? [...spellings, ...spellings.flatMap(secretFile)] : spellings;
  });
}

/** The names that suggestions are made of. */
export function ownSpellings(
  spellings: Iterable<Spelling>,
  source: keyof Names,
): readonly string[] {
  return [...spellings].flatMap(({ isOwn, isFile, names }) => {
    const name = names[source];
    return (isOwn || isFile) && name !== undefined ? [name] : [];
  });
}

/** Spellings by the name that they have in one source. */
export function spellingsIn(
  source: keyof Names,
  table: OptionTable,
): ReadonlyMap<string, Spelling> {
  return new Map(
    spellingsOf(table).flatMap((spelling) => {
      const name = spelling.names[source];
      return name === undefined ? [] : [[name, spelling] as const];
    }),
  );
}

/** What a source found under a spelling. `spelled` is how the user wrote its name. */
export function foundAs(
  { key, isFile }: Spelling,
  source: Source,
  given: readonly Given[],
  spelled = source.name,
): Found {
  return { key, source, spelled, given, ...(isFile ? { isFile } : {}) };
}

/** The values in a text as a flag or a variable holds it. */
export function givenText({ option, isFile }: Spelling, value: string): readonly Given[] {
  const texts = option.kind.item && !isFile ? splitList(value) : [value];
  // A list of nothing but separators is a slip, and no way to ask for an empty list.
  if (texts.length === 0) return [{ text: "", original: value }];
  return texts.map((text) => ({ text, original: text }));
}

function ownNames(key: string, option: AnyOption): Names {
  const { flag } = namesOf(key);
  const names = { flag, variable: variableFor(key, option) };
  return option.notInFile ? names : { ...names, key };
}

/** Only the flag has such a twin: no option of the server is a secret. */
function secretFile({ names, ...spelling }: Spelling): readonly Spelling[] {
  if (names.flag === undefined) return [];
  const { isOwn: _isOwn, ...rest } = spelling;
  return [{ ...rest, names: { flag: `${names.flag}-file` }, isFile: true }];
}
