import type { Phase } from "./activity.ts";
import type { Connection } from "./connection.ts";

/** Nothing is owed to these yet: they make room, and are closed first at the end. */
const INCOMPLETE: ReadonlySet<Phase> = new Set(["idle", "head", "body", "skipping", "lingering"]);

/** Those to which nothing is owed, the one that has stood still for the longest time first. */
export function incomplete(connections: Iterable<Connection>): Connection[] {
  return oldestFirst(connections, ({ activity: { phase } }) => INCOMPLETE.has(phase));
}

/** Those that have taken nothing of their answer for so many sweeps, the oldest first. */
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
