import type { OptionTable } from "../option.ts";
import { type Findings, foundAs, givenText, spellingsOf, variableOf } from "./found.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What the environment says. An empty variable counts as not set. */
export function readEnvironment(table: OptionTable, environment: Environment): Findings {
  const found = spellingsOf(table).flatMap((spelling) => {
    const name = variableOf(spelling);
    const value = environment[name];
    if (!value) return [];
    const spell = (written: string) => variableOf({ ...spelling, written });
    return [foundAs(spelling, { from: "environment", name }, givenText(spelling, value), spell)];
  });
  return { found, problems: [] };
}
