import type { Phase } from "./activity.ts";
import type { Connection } from "./connection.ts";

/** Phases in which the server owes no answer. These connections make room first, and end first. */
const INCOMPLETE: ReadonlySet<Phase> = new Set([
  ...["idle", "head", "body", "skipping", "held", "lingering"] as const,
]);

/** Connections that wait for the answer to a wrong token, the longest first. */
export function held(connections: Iterable<Connection>): Connection[] {
  return oldestFirst(connections, ({ activity: { phase } }) => phase === "held");
}

/** Connections without a whole request, or with a wrong token; the oldest phase first. */
export function incomplete(connections: Iterable<Connection>): Connection[] {
  return oldestFirst(connections, ({ activity: { phase } }) => INCOMPLETE.has(phase));
}

/** Connections whose client has read nothing for `ticks` sweeps, the longest first. */
export function stalled(connections: Iterable<Connection>, ticks: number): Connection[] {
  return oldestFirst(
    connections,
    ({ activity }) => activity.phase === "sending" && activity.ticks >= ticks,
  );
}

function oldestFirst(
  connections: Iterable<Connection>,
  isMeant: (connection: Connection) => boolean,
): Connection[] {
  return [...connections].filter(isMeant).sort((a, b) => b.activity.ticks - a.activity.ticks);
}
