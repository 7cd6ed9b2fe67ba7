import { flagName, type OptionTable } from "../config/kinds/option.ts";
import { OPTIONS } from "../config/options.ts";
import type { Command } from "./command.ts";

/** A flag for shell completion. */
export interface CompletionFlag {
  /** `--cache-max-size`. */
  readonly flag: string;
  readonly help: string;
  /** True if a value follows as another word. */
  readonly takesValue: boolean;
}

/** The flags of a command: its own, then the server's if it takes them. */
export function completionFlags({ flags, ownFlags = {} }: Command): readonly CompletionFlag[] {
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
