import { type AnyOption, HIDDEN, type Kind, type OptionTable } from "./kinds/option.ts";

/** A value as TOML, with secrets hidden. `undefined` has no TOML. */
export function tomlOf(option: AnyOption, value: unknown): string {
  if (option.secret) return JSON.stringify(HIDDEN);
  const { item } = option.kind;
  if (item === undefined) return tomlLeaf(option.kind, value);
  const values: readonly unknown[] = Array.isArray(value) ? value : [];
  return `[${values.map((one) => tomlLeaf(item, one)).join(", ")}]`;
}

function tomlLeaf(kind: Kind<unknown>, value: unknown): string {
  const text = kind.redact?.(kind.print(value)) ?? kind.print(value);
  const isBare = kind.bare === "boolean" || (kind.bare === "number" && /^-?\d+$/.test(text));
  // JSON's escapes are valid in TOML, which also requires one for DEL.
  return isBare ? text : JSON.stringify(text).replaceAll("\x7f", "\\u007f");
}

/** A default for people; `undefined` if there is none. */
export function defaultText(option: AnyOption): string | undefined {
  if (option.shown !== undefined) return option.shown;
  if (option.secret || option.default === undefined) return undefined;
  return option.kind.print(option.default);
}

/** A configuration file with all defaults. Options without one are commented out. */
export function sampleFile(table: OptionTable, about: string): string {
  const rows = Object.entries(table).filter(([, option]) => !option.notInFile);
  return tomlFile(about, rows.map(([key, option]) => [key, (name) => sampleEntry(name, option)]));
}

/** Writes the entry of a key, which has this name in its table. */
export type EntryWriter = (name: string) => string;

/** A configuration file. The keys of the top level come first. */
export function tomlFile(
  about: string,
  entries: readonly (readonly [key: string, EntryWriter])[],
): string {
  const tables = Map.groupBy(entries, ([key]) => tableOf(key));
  const parts = [...tables].sort(([a], [b]) => Number(a !== "") - Number(b !== ""))
    .map(([name, inTable]) =>
      (name === "" ? "" : `[${name}]\n`) +
      inTable.map(([key, entry]) => entry(nameOf(key))).join("\n")
    );
  return `${commented(about)}\n${parts.join("\n")}`;
}

function sampleEntry(name: string, option: AnyOption): string {
  const comments = [option.help, ...option.details === undefined ? [] : [option.details]];
  const { default: value, shown, kind } = option;
  if (value !== undefined) return `${commented(...comments)}${name} = ${tomlOf(option, value)}\n`;
  const text = option.example ?? kind.placeholder;
  const example = kind.item ? `["${text}"]` : `"${text}"`;
  const unset = shown === undefined ? [] : [`Default: ${shown}`];
  return commented(...comments, ...unset, `${name} = ${example}`);
}

/** Lines of comments. */
export function commented(...lines: readonly string[]): string {
  return lines.flatMap((line) => line.split("\n")).map((line) => `# ${line}`.trimEnd() + "\n")
    .join("");
}

/** `cache` of `cache.max-size`; empty for a key of the top level. */
function tableOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf(".")));
}

function nameOf(key: string): string {
  return key.slice(key.indexOf(".") + 1);
}
