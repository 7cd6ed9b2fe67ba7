import type { Host } from "./host.ts";

/** One word behind `larder`. */
export interface Command {
  readonly name: string;
  /** One line, no full stop. */
  readonly summary: string;
  /** Command lines to learn from, each with what it does. */
  readonly examples: readonly (readonly [commandLine: string, effect: string])[];
  /** Resolves to the exit status. */
  run(args: readonly string[], host: Host): Promise<number>;
}
