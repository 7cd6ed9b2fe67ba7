import type { AnyOption } from "../kinds/option.ts";
import type { FoundOption } from "./found.ts";

/** A setting of ncps without a counterpart in larder. Its `help` names the alternative. */
export interface ForeignSetting extends AnyOption {
  /** Values that match larder's behaviour, beside an empty one; for booleans it is off. */
  readonly obeyed?: readonly string[];
  /** True for tuning that larder does not need: ignoring it changes nothing. */
  readonly isIgnored?: true;
}

/** Rows by key. */
export type ForeignTable = Readonly<Record<string, ForeignSetting>>;

/** ncps's spellings of a boolean that is off, in any case. */
const OFF = ["false", "0", "f"];

/** Problems and warnings for the given foreign settings. */
export interface ForeignProblems {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Sorts given foreign settings into errors and warnings, one line for each reason. */
export function checkForeign(table: ForeignTable, found: readonly FoundOption[]): ForeignProblems {
  const unknown = found.flatMap((one) => {
    const row = table[one.key];
    return row === undefined || isObeyed(row, one) ? [] : [{ found: one, row }];
  });
  const problems = unknown.filter(({ row }) => !row.isIgnored)
    .map(({ found: { spelled }, row }) => `${spelled}: larder has no such setting: ${row.help}`);
  const moot = Map.groupBy(
    unknown.filter(({ row }) => row.isIgnored),
    ({ found: { source }, row }) => `${source.from === "file" ? source.name : ""}\n${row.help}`,
  );
  const warnings = [...moot.values()].map((rows) =>
    `${namesOfAll(rows.map((one) => one.found))}: without effect: ${rows[0]?.row.help}`
  );
  return { problems: [...new Set(problems)], warnings };
}

function isObeyed({ kind, obeyed }: ForeignSetting, { given }: FoundOption): boolean {
  const values = obeyed ?? (kind.bare === "boolean" ? OFF : []);
  return given.every(({ text }) => text === "" || values.includes(text.toLowerCase()));
}

/** `FILE: a, b`, or `--a, B`. */
function namesOfAll(found: readonly FoundOption[]): string {
  const names = found.map(({ spelled, source }, at) =>
    source.from === "file" && at > 0 ? spelled.slice(`${source.name}: `.length) : spelled
  );
  return [...new Set(names)].join(", ");
}
