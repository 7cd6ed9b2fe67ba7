import { ConfigError } from "../config/config_error.ts";
import type { OptionTable } from "../config/kinds/option.ts";
import { OPTIONS } from "../config/options.ts";
import { NCPS_ONLY } from "../config/options/ncps_only.ts";
import { readFlags } from "../config/sources/flags.ts";
import { spellingsIn } from "../config/sources/found.ts";

/** The arguments of a command that takes the server's options, operands and flags of its own. */
export interface ServerWords {
  /** Its own flags with their values, and the operands. */
  readonly own: readonly string[];
  /** All other flags with their values. */
  readonly server: readonly string[];
}

/** Splits arguments. Throws a ConfigError for an unknown flag: its value would be an operand. */
export function serverWords(ownFlags: OptionTable, args: readonly string[]): ServerWords {
  const ownSpellings = spellingsIn("flag", ownFlags);
  const all: OptionTable = { ...OPTIONS, ...NCPS_ONLY, ...ownFlags };
  const spellings = spellingsIn("flag", all);
  const own: string[] = [];
  const server: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") return { own: [...own, ...args.slice(at)], server };
    const [name = ""] = word.split("=");
    const spelled = [name, name.replace(/^--no-/, "--")].find((one) => spellings.has(one)) ?? name;
    const isFlag = word.startsWith("-") && word !== "-";
    if (isFlag && !spellings.has(spelled)) refuseUnknown(all, word);
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

function refuseUnknown(all: OptionTable, word: string): void {
  const { problems } = readFlags(all, [word]);
  if (problems.length > 0) throw new ConfigError(problems);
}
