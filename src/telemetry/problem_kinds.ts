/** Log messages about one lasting problem, and those that end it. */
interface ProblemKind {
  readonly name: string;
  readonly begins: readonly string[];
  readonly ends: readonly string[];
}

/** The problems that last. Each other message is a kind of its own, without an end. */
export const PROBLEM_KINDS: readonly ProblemKind[] = [
  {
    name: "upstream down",
    begins: ["upstream is down", "upstream failed", "upstream does not answer"],
    ends: ["upstream is up again", "upstream answers again"],
  },
  {
    name: "upstream slow",
    begins: ["upstream too slow: queued requests time out"],
    ends: ["upstream keeps up again"],
  },
  {
    name: "database locked",
    begins: ["database does not take writes: narinfos are kept in memory"],
    ends: ["database takes writes again: all narinfos are written"],
  },
  {
    name: "database unreadable",
    begins: ["narinfo lookup failed, querying upstreams"],
    ends: ["narinfos can be read again"],
  },
  {
    name: "uses",
    begins: ["uses not written"],
    ends: ["uses are written again"],
  },
  {
    name: "not kept",
    begins: ["nars cannot be kept: they pass through", "nar not kept"],
    ends: ["nars are kept again"],
  },
];

const BEGUN_BY = new Map(
  PROBLEM_KINDS.flatMap(({ name, begins }) => begins.map((message) => [message, name] as const)),
);

const ENDED_BY = new Map(
  PROBLEM_KINDS.flatMap(({ name, ends }) => ends.map((message) => [message, name] as const)),
);

/** The kind of a warning or an error. */
export function kindOf(message: string): string {
  return BEGUN_BY.get(message) ?? message;
}

/** The kind that a message ends, if it ends one. */
export function endedKindOf(message: string): string | undefined {
  return ENDED_BY.get(message);
}
