import type { OptionTable } from "../config/kinds/option.ts";
import type { Host } from "./host.ts";

/** One word behind `larder`. */
export interface Command {
  readonly name: string;
  /** One line, no full stop. */
  readonly summary: string;
  /** What stands behind the flags, such as `PATH...`; absent: nothing may. */
  readonly operands?: string;
  /** What the summary leaves out, in lines that end. */
  readonly about?: string;
  /** Its own flags, or "server": those of every option that the server has. */
  readonly flags: "server" | OptionTable;
  /** Further ones of its own, beside those of the server. */
  readonly ownFlags?: OptionTable;
  /** Command lines to learn from, each with what it does. */
  readonly examples: readonly (readonly [commandLine: string, effect: string])[];
  /** Resolves to the exit status. */
  run(args: readonly string[], host: Host): Promise<number>;
}
