import { textsIn } from "../kinds/list.ts";
import {
  type AnyOption,
  type Names,
  namesOf,
  type OptionTable,
  variableFor,
} from "../kinds/option.ts";

/** The source of a value. `name` is the flag, the variable, or the path of file or credential. */
export interface SettingSource {
  readonly from: "flag" | "environment" | "file" | "credential" | "default";
  readonly name: string;
}

/** One value as written. Problems show `original` as JSON. */
export interface GivenValue {
  readonly text: string;
  readonly original: unknown;
  /** The expected form, if the kind does not accept the TOML type. */
  readonly mistyped?: string;
}

/** One source's values for one option. */
export interface FoundOption {
  readonly key: string;
  readonly source: SettingSource;
  /** The user's spelling of the option: flag, variable, or `FILE: key`. */
  readonly spelled: string;
  /** One value; any number for a list. */
  readonly given: readonly GivenValue[];
  /** True if the values are paths of files with the real ones. */
  readonly isFile?: true;
}

/** The findings and problems of one source. */
export interface Findings {
  readonly found: readonly FoundOption[];
  readonly problems: readonly string[];
  readonly warnings?: readonly string[];
}

/** The names of an option: its own, or those of ncps. */
export interface Spelling {
  readonly key: string;
  readonly option: AnyOption;
  readonly names: Names;
  /** True for the names of the option's own row. */
  readonly isOwn?: true;
  /** True if the value is the path of a file with the real one. */
  readonly isFile?: true;
}

/** Every spelling of a table, including those for files of secrets. */
export function spellingsOf(table: OptionTable): readonly Spelling[] {
  return Object.entries(table).flatMap(([key, option]) => {
    const own = ownNames(key, option);
    const spellings: readonly Spelling[] = [
      { key, option, names: own, isOwn: true },
      ...(option.also ?? []).map((names) => ({ key, option, names })),
    ];
    return option.secret ? [...spellings, ...spellings.map(secretFile)] : spellings;
  });
}

/** The names for suggestions. */
export function ownSpellings(
  spellings: Iterable<Spelling>,
  source: keyof Names,
): readonly string[] {
  return [...spellings].flatMap(({ isOwn, isFile, names }) => {
    const name = names[source];
    return (isOwn || isFile) && name !== undefined ? [name] : [];
  });
}

/** Spellings by their names in one source. */
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

/** The finding for a spelling. `spelled` is the user's form of its name. */
export function foundAs(
  { key, isFile }: Spelling,
  source: SettingSource,
  given: readonly GivenValue[],
  spelled = source.name,
): FoundOption {
  return { key, source, spelled, given, ...(isFile ? { isFile } : {}) };
}

/** The values in the text of a flag or a variable. */
export function givenText({ option, isFile }: Spelling, value: string): readonly GivenValue[] {
  const texts = option.kind.item && !isFile ? textsIn(option.kind, value) : [value];
  // A list of separators alone is a mistake, not an empty list.
  if (texts.length === 0) return [{ text: "", original: value }];
  return texts.map((text) => ({ text, original: text }));
}

function ownNames(key: string, option: AnyOption): Names {
  const { flag } = namesOf(key);
  const names = { flag, variable: variableFor(key, option) };
  return option.notInFile ? names : { ...names, key };
}

/** The twin for a file with the secret: `--x-file`, `X_FILE` and `x-file`. */
function secretFile({ names, ...spelling }: Spelling): Spelling {
  const { flag, variable, key } = names;
  const { isOwn: _isOwn, ...rest } = spelling;
  const twin = {
    ...(flag === undefined ? {} : { flag: `${flag}-file` }),
    ...(variable === undefined ? {} : { variable: `${variable}_FILE` }),
    ...(key === undefined ? {} : { key: `${key}-file` }),
  };
  return { ...rest, names: twin, isFile: true };
}
