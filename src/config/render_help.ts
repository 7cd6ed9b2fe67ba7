import { type AnyOption, flagName, type OptionTable, variableFor } from "./kinds/option.ts";
import type { OptionGroup } from "./options.ts";
import { defaultText } from "./render_toml.ts";

// Wide enough for most flags; a longer one pushes its variable to the right.
const USAGE_WIDTH = 42;

/** The options of all groups for `--help`, each with its variable and default. */
export function helpText(groups: readonly OptionGroup[]): string {
  return groups.map(({ title, options }) => {
    const entries = Object.entries(options).map(([key, option]) => helpEntry(key, option));
    return `${title}:\n${entries.join("")}`;
  }).join("\n");
}

function helpEntry(key: string, option: AnyOption): string {
  const shown = defaultText(option);
  const lines = [
    option.help,
    ...option.details === undefined ? [] : [option.details],
    ...option.kind.item ? ["May be given several times"] : [],
    ...option.secret ? [`Can be read from a file: ${flagName(key)}-file PATH`] : [],
    ...shown === undefined ? [] : [`Default: ${shown || "none"}`],
  ];
  const head = `${usageOf(key, option).padEnd(USAGE_WIDTH)}  ${variableFor(key, option)}`;
  return `  ${head}\n${lines.map((line) => `      ${line}\n`).join("")}`;
}

/** All options as a table in Markdown, for docs/options.md. */
export function referenceTable(table: OptionTable): string {
  const head = ["Flag", "What it does", "Default", "Key in the file", "Variable"];
  const rows = Object.entries(table).map(([key, option]) => [
    `\`${usageOf(key, option)}\`${option.kind.item ? " (repeatable)" : ""}`,
    option.help,
    referenceDefault(option),
    option.notInFile ? "" : `\`${key}\``,
    `\`${variableFor(key, option)}\``,
  ]);
  const lines = [head, head.map(() => "---"), ...rows].map((cells) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`
  );
  return lines.join("");
}

function referenceDefault(option: AnyOption): string {
  const text = defaultText(option);
  if (text === undefined) return "";
  if (text === "") return "none";
  return option.shown === undefined ? `\`${text}\`` : text;
}

/** `--cache-max-size SIZE`; a boolean needs no value. */
function usageOf(key: string, option: AnyOption): string {
  const flag = flagName(key);
  return option.kind.bare === "boolean"
    ? `--[no-]${flag.slice(2)}`
    : `${flag} ${option.kind.placeholder}`;
}
