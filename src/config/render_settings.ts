import type { OptionTable } from "./kinds/option.ts";
import { defaultText, tomlOf } from "./render_toml.ts";
import type { SettingSource } from "./sources/found.ts";

// A longer value (a list of keys) pushes its own comment to the right.
const ALIGNED_COLUMNS_MAX = 60;

/** A setting and its source. */
export interface Effective {
  readonly values: Readonly<Record<string, unknown>>;
  readonly sources: Readonly<Record<string, SettingSource>>;
}

/**
 * The effective settings, one line for each key, with its source behind it.
 *
 * The text is TOML: a valid configuration file once the hidden secrets are filled in.
 */
export function effectiveSettings(
  groups: readonly { readonly options: OptionTable }[],
  effective: Effective,
): string {
  const blocks = groups.map(({ options }) => linesOf(options, effective))
    .filter((lines) => lines.length > 0);
  const lengths = blocks.flat().map(({ setting }) => setting.length);
  const column = Math.max(0, ...lengths.filter((length) => length <= ALIGNED_COLUMNS_MAX));
  return blocks.map((lines) =>
    lines.map(({ setting, source }) => `${setting.padEnd(column)}   # ${source}\n`).join("")
  ).join("\n");
}

/** The same for programs: by key, a value (`null` without one) and where it comes from. */
export function effectiveSettingsJson(options: OptionTable, { values, sources }: Effective) {
  const listed = Object.entries(options).filter(([, option]) => !option.notInFile);
  return Object.fromEntries(listed.map(([key, option]) => {
    const { from, name } = sources[key] ?? { from: "default", name: "" };
    const value = values[key];
    // What stands behind a key in TOML is JSON, too.
    const shown: unknown = value === undefined ? null : JSON.parse(tomlOf(option, value));
    return [key, { value: shown, from, name: name === "" ? null : name }];
  }));
}

interface Line {
  readonly setting: string;
  readonly source: string;
}

function linesOf(options: OptionTable, { values, sources }: Effective): readonly Line[] {
  return Object.entries(options).filter(([, option]) => !option.notInFile)
    .map(([key, option]) => {
      const { from, name } = sources[key] ?? { from: "default", name: "" };
      const source = `${from} ${name}`.trimEnd();
      const value = values[key];
      if (value !== undefined) return { setting: `${key} = ${tomlOf(option, value)}`, source };
      return { setting: `# ${key} is not set`, source: `${source} (${defaultText(option)})` };
    });
}
