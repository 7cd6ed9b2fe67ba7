import { flagName, type OptionTable } from "../config/kinds/option.ts";
import { OPTIONS } from "../config/options.ts";
import type { Command } from "./command.ts";

/** A flag as shells complete it. */
export interface FlagWord {
  /** `--cache-max-size`. */
  readonly flag: string;
  readonly help: string;
  /** Whether another word follows it. */
  readonly takesValue: boolean;
}

/** The flags of a command: its own, then those of the server if it takes them. */
export function flagWords({ flags, ownFlags = {} }: Command): readonly FlagWord[] {
  const table: OptionTable = { ...ownFlags, ...flags === "server" ? OPTIONS : flags };
  return Object.entries(table).flatMap(([key, { kind, help, secret, default: standard }]) => {
    const flag = flagName(key);
    if (kind.bare === "boolean") {
      const denied = { flag: `--no-${flag.slice(2)}`, help, takesValue: false };
      return [{ flag, help, takesValue: false }, ...standard === true ? [denied] : []];
    }
    const file = { flag: `${flag}-file`, help: `${help} (from a file)`, takesValue: true };
    return [{ flag, help, takesValue: true }, ...secret ? [file] : []];
  });
}
