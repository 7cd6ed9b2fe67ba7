import { OPTIONS } from "../config/options.ts";
import { NCPS_ONLY } from "../config/options/ncps_only.ts";
import { spellingsIn } from "../config/sources/found.ts";

/**
 * The arguments with the command first: ncps allows some server flags before it. Unchanged if
 * another word precedes the command.
 */
export function commandFirst(args: readonly string[]): readonly string[] {
  const flags = spellingsIn("flag", { ...OPTIONS, ...NCPS_ONLY });
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (!word.startsWith("-")) return [word, ...args.slice(0, at), ...args.slice(at + 1)];
    const [name = ""] = word.split("=");
    const flag = flags.get(name) ?? flags.get(name.replace(/^--no-/, "--"));
    if (flag === undefined) return args;
    const hasValueBehind = name === word && flag.option.kind.bare !== "boolean";
    if (hasValueBehind) at++;
  }
  return args;
}
