import type { OptionTable } from "../config/kinds/option.ts";
import { OPTIONS } from "../config/options.ts";
import { NCPS_ONLY } from "../config/options/ncps_only.ts";
import { spellingsIn } from "../config/sources/found.ts";

/** The arguments of a command that takes the server's options, operands and flags of its own. */
export interface ServerWords {
  /** Its own flags with their values, and the operands. */
  readonly own: readonly string[];
  /** All other flags with their values. */
  readonly server: readonly string[];
}

/** Splits arguments. Unknown flags count as the server's. */
export function serverWords(ownFlags: OptionTable, args: readonly string[]): ServerWords {
  const ownSpellings = spellingsIn("flag", ownFlags);
  const spellings = spellingsIn("flag", { ...OPTIONS, ...NCPS_ONLY, ...ownFlags });
  const own: string[] = [];
  const server: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") return { own: [...own, ...args.slice(at)], server };
    const [name = ""] = word.split("=");
    const spelled = [name, name.replace(/^--no-/, "--")].find((one) => spellings.has(one)) ?? name;
    const isFlag = word.startsWith("-") && word !== "-";
    const into = !isFlag || ownSpellings.has(spelled) ? own : server;
    into.push(word);
    const takesValue = spellings.get(name)?.option.kind.bare !== "boolean" && spellings.has(name);
    const next = args[at + 1];
    if (takesValue && !word.includes("=") && next !== undefined && !next.startsWith("--")) {
      into.push(next);
      at++;
    }
  }
  return { own, server };
}
