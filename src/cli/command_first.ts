import { OPTIONS } from "../config/options.ts";
import { NCPS_ONLY } from "../config/options/ncps_only.ts";
import { splitArguments } from "../config/sources/flags.ts";

/**
 * The arguments with the command first: ncps allows some server flags before it. Unchanged if
 * another argument precedes the command.
 */
export function commandFirst(args: readonly string[]): readonly string[] {
  const before: string[] = [];
  for (const { texts, flag } of splitArguments({ ...OPTIONS, ...NCPS_ONLY }, args)) {
    const [first = ""] = texts;
    if (first === "--" || (flag !== undefined && flag.spelling === undefined)) return args;
    if (flag === undefined) return [first, ...before, ...args.slice(before.length + 1)];
    before.push(...texts);
  }
  return args;
}
