import { gravityOf } from "../../telemetry/events.ts";
import { factsInWords, titleOf, whatToDo } from "./problem_words.ts";
import type { ProblemStats } from "./stats.ts";

/** How many subjects a row of a kind names. */
export const SUBJECTS_MAX = 4;

/** The problems of one part. The first has the title and the remedy. */
export type ProblemKind<Listed> = readonly [Listed, ...Listed[]];

/** The kinds, the newest first. In each, the problems that last come first, the gravest ahead. */
export function problemKinds<Listed extends Pick<ProblemStats, "part" | "event" | "over_at">>(
  problems: readonly Listed[],
): readonly ProblemKind<Listed>[] {
  const kinds = Map.groupBy(problems, ({ part }) => part);
  return [...kinds.values()].flatMap((kind) => {
    const [first, ...others] = kind.toSorted((a, b) =>
      Number(a.over_at !== null) - Number(b.over_at !== null) ||
      gravityOf(b.event) - gravityOf(a.event)
    );
    return first === undefined ? [] : [[first, ...others] as const];
  });
}

/** Remedy for the ongoing problems of a kind; empty if there is none, or it is unknown. */
export function remedyOf(
  kind: ProblemKind<Pick<ProblemStats, "event" | "facts" | "over_at">>,
): string {
  const gravest = kind.filter((one) => one.over_at === null && one.event === kind[0].event);
  return [...new Set(gravest.flatMap((one) => whatToDo(one) ?? []))].join("; ");
}

/** True if the verdict names the remedy, so that the list need not. */
export function isInVerdict(
  remedy: string,
  hints: readonly (string | null | undefined)[],
): boolean {
  return hints.some((hint) => hint?.includes(remedy));
}

/** The facts of one of a kind. Its own title stands only where it differs from the kind's. */
export function subjectWords(
  one: Pick<ProblemStats, "event" | "message" | "facts">,
  title: string,
): string {
  return [...titleOf(one) === title ? [] : [titleOf(one)], ...factsInWords(one)].join(", ");
}
