import type { OptionTable } from "../kinds/option.ts";
import { type Findings, foundAs, givenText, spellingsIn } from "./found.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The settings of the environment. An empty variable counts as unset. That of a secret is a
 * warning: the server may be more open than the operator meant.
 */
export function readEnvironment(table: OptionTable, environment: Environment): Findings {
  const spellings = [...spellingsIn("variable", table)];
  const found = spellings.flatMap(([name, spelling]) => {
    const value = environment[name];
    if (!value) return [];
    const given = givenText(spelling, value);
    return [foundAs(spelling, { from: "environment", name }, given)];
  });
  const warnings = spellings
    .filter(([name, { option }]) => option.secret && environment[name] === "")
    .map(([name]) => `${name}: empty, so it counts as not set; set it, or remove it`);
  return { found, problems: [], warnings };
}
