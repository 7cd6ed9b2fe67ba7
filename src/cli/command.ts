import type { OptionTable } from "../config/kinds/option.ts";
import type { CommandProcess } from "./command_process.ts";

/** A command of `larder`. */
export interface Command {
  readonly name: string;
  /** One line, no full stop. */
  readonly summary: string;
  /** Operands behind the flags, such as `PATH...`; missing: none allowed. */
  readonly operands?: string;
  /** Further help, as whole lines. */
  readonly about?: string;
  /** Its own flags, or "server" for the server's options. */
  readonly flags: "server" | OptionTable;
  /** Further flags beside those of the server. */
  readonly ownFlags?: OptionTable;
  /** True if it may run this machine's Nix. All others give the permission up at their start. */
  readonly runsNix?: true;
  /** True if its output is text for people, whose lines go on below on a narrow terminal. */
  readonly prose?: true;
  /** Examples: command lines and their effects. */
  readonly examples: readonly (readonly [commandLine: string, effect: string])[];
  /** Resolves to the exit status. */
  run(args: readonly string[], commandProcess: CommandProcess): Promise<number>;
}
