import { counted } from "../../base/format_units.ts";
import type { Pinned } from "./pinned_closures.ts";

/** The last look at a pinned closure, in the server's answer. */
export interface Look {
  readonly at: string;
  readonly paths: number;
  readonly missing: number;
  readonly upstream: number;
  readonly nowhere: number;
  readonly unasked?: number;
  readonly examples: readonly string[];
}

/** What a pin says of its completeness. An answer without it comes from an older larder. */
export interface Completeness {
  readonly keep_complete?: boolean;
  readonly complete?: boolean | null;
  readonly look?: Look | null;
}

const NAME_REGEXP = /^[0-9A-Za-z+\-._?=]{1,211}$/;
const TIME_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
/** A name may have 211 characters, and a screen has 100 columns. */
const NAME_MAX = 24;
const EXAMPLE_MAX = 96;

const COUNTS = ["paths", "missing", "upstream", "nowhere"] as const;

/** True for larder's own form: the text reaches the terminal. */
export function isCompleteness({ keep_complete, complete, look }: Completeness): boolean {
  const isFlag = (value: unknown) => value === undefined || value === null || value === !!value;
  return isFlag(keep_complete) && isFlag(complete) && (look === undefined || look === null ||
    TIME_REGEXP.test(look.at) && COUNTS.every((name) => Number.isSafeInteger(look[name])) &&
      Number.isSafeInteger(look.unasked ?? 0) &&
      Array.isArray(look.examples) && look.examples.every((name) => NAME_REGEXP.test(name)));
}

/** In one column: "kept" for a complete closure that larder keeps so. */
export function completenessWord(
  { keep_complete, complete, look, missing = 0 }: Completeness & Partial<Pick<Pinned, "missing">>,
): string {
  const gone = Math.max(missing, look?.missing ?? 0);
  if (gone > 0) return `${gone} missing`;
  // The first look begins within a minute of the pin.
  if (complete !== true) return "counting";
  return keep_complete ? "kept" : "yes";
}

/** Where the missing paths are, and which they are; none for a closure that lacks nothing. */
export function missingLines(
  { name, root, look }: Pick<Pinned, "name" | "root"> & Completeness,
): readonly string[] {
  if (!look || look.missing === 0) return [];
  const { missing, upstream, nowhere, unasked = 0, examples } = look;
  const unknown = missing - upstream - nowhere - unasked;
  const parts = [
    [upstream, "upstream still has"],
    [nowhere, "nowhere"],
    [unknown, "unknown"],
    [unasked, "not asked yet"],
  ] as const;
  const where = parts.filter(([count]) => count > 0).map(([count, words]) => `${count} ${words}`);
  const more = missing - examples.length;
  return [
    `${cut(name ?? root, NAME_MAX)}: ${counted(missing, "path")} missing (${where.join(", ")}):`,
    ...examples.map((example) => `  ${cut(example, EXAMPLE_MAX)}`),
    ...more > 0 ? [`  and ${more} more`] : [],
  ];
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text;
}
