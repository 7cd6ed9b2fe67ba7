import { splitList } from "../kinds/list.ts";
import {
  type AnyOption,
  flagName,
  type OptionTable,
  variableFor,
  variableName,
} from "../option.ts";

/** Where a value came from. `name` is the flag, the variable or the path of the file. */
export interface Source {
  readonly from: "flag" | "environment" | "file" | "credential" | "default";
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
  /** How it is spelled today, where `spelled` is a former name. */
  readonly renamed?: string;
  /** One value; any number for a list. */
  readonly given: readonly Given[];
  /** The values are paths of files that hold the real ones. */
  readonly isFile?: true;
}

/** All that one source says. */
export interface Findings {
  readonly found: readonly Found[];
  readonly problems: readonly string[];
}

/** A key under which an option can be given: its own, a former one, that of a secret's file. */
export interface Spelling {
  readonly key: string;
  readonly option: AnyOption;
  readonly written: string;
  /** The key as it is spelled today. */
  readonly current: string;
  readonly isFile?: true;
}

/** Every key of a table, with the former ones and those that name the file of a secret. */
export function spellingsOf(table: OptionTable): readonly Spelling[] {
  return Object.entries(table).flatMap(([key, option]) =>
    [key, ...option.was ?? []].flatMap((written): readonly Spelling[] => {
      const spelling = { key, option, written, current: key };
      const file = { key, option, written: `${written}-file`, current: `${key}-file` };
      return option.secret ? [spelling, { ...file, isFile: true }] : [spelling];
    })
  );
}

/** What a source found under a spelling. `spell` writes a key as that source does. */
export function foundAs(
  spelling: Spelling,
  source: Source,
  given: readonly Given[],
  spell: (key: string) => string,
): Found {
  const { key, written, current, isFile } = spelling;
  return {
    key,
    source,
    spelled: spell(written),
    given,
    ...(written === current ? {} : { renamed: spell(current) }),
    ...(isFile ? { isFile } : {}),
  };
}

/** The values in a text as a flag or a variable holds it. */
export function givenText({ option, isFile }: Spelling, value: string): readonly Given[] {
  const texts = option.kind.item && !isFile ? splitList(value) : [value];
  // A list of nothing but separators is a slip, and no way to ask for an empty list.
  if (texts.length === 0) return [{ text: "", original: value }];
  return texts.map((text) => ({ text, original: text }));
}

/** The flag of a spelling. */
export function flagOf(spelling: Spelling): string {
  return flagName(spelling.written);
}

/** The environment variable of a spelling. */
export function variableOf({ option, key, written }: Spelling): string {
  return written === key ? variableFor(key, option) : variableName(written);
}
