import type { OptionTable } from "../kinds/option.ts";
import { type Findings, foundAs, givenText, spellingsIn } from "./found.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings of the environment. An empty variable counts as unset. */
export function readEnvironment(table: OptionTable, environment: Environment): Findings {
  const found = [...spellingsIn("variable", table)].flatMap(([name, spelling]) => {
    const value = environment[name];
    if (!value) return [];
    const given = givenText(spelling, value);
    return [foundAs(spelling, { from: "environment", name }, given)];
  });
  return { found, problems: [] };
}
