import { DATABASE_AWAY, Failure, STORAGE_AWAY } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";

/** Time in which a run's figures change at least once; the server reports every second. */
const STANDSTILL_MAX_MS = 600_000;

/** The longest run that is followed: a server may count up for ever. */
const RUN_MAX_MS = 86_400_000;

/** An event has some 300 characters. */
const EVENT_LENGTH_MAX = 64 * 1024;

/** The server reports every second: more is no report of larder's, and may never end. */
const EVENTS_PER_SECOND_MAX = 10;
const EVENTS_AT_ONCE_MAX = 1_000;

export interface FollowLimits {
  readonly standstillMs?: number;
  readonly runMs?: number;
}

/** The lines of a run's progress. Throws at a limit, or if the run fails or its answer breaks off. */
export async function* followedLines(
  { body }: Response,
  { standstillMs = STANDSTILL_MAX_MS, runMs = RUN_MAX_MS }: FollowLimits = {},
): AsyncGenerator<string> {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let count = 0;
  let last = "";
  const startedAtMs = clock.nowMs();
  let changedAtMs = startedAtMs;
  try {
    for (;;) {
      const nowMs = clock.nowMs();
      const leftMs = Math.min(changedAtMs + standstillMs, startedAtMs + runMs) - nowMs;
      const read = leftMs > 0 ? await clock.within(reader.read(), leftMs) : undefined;
      if (read === undefined) throw overdue();
      if (read.done) return;
      const lines = (rest + read.value).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > EVENT_LENGTH_MAX) throw unreadable();
      count += lines.length;
      const seconds = (clock.nowMs() - startedAtMs) / 1_000;
      if (count > EVENTS_AT_ONCE_MAX + EVENTS_PER_SECOND_MAX * seconds) throw unreadable();
      for (const line of lines) {
        if (line !== last) changedAtMs = clock.nowMs();
        last = line;
        const event = parsed(line);
        if (event["event"] === "failed") throw failedRun(event["part"]);
        yield line;
      }
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    const message = "Cannot follow the run: the connection broke; see the server's log";
    throw new Failure("corrupt", message, {}, error);
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Only words of its own reach the terminal. */
const LOST: ReadonlyMap<unknown, string> = new Map([
  ["database", DATABASE_AWAY],
  ["storage", STORAGE_AWAY],
]);

/** What a run lost, by its last line. */
export function failedRun(part: unknown): Failure {
  const lost = LOST.get(part);
  if (lost === undefined) {
    return new Failure("corrupt", "Cannot follow the run: it failed; see the server's log");
  }
  return new Failure("away", `the run ended early: ${lost}; try again in a moment`);
}

function overdue(): Failure {
  return new Failure("corrupt", "Cannot follow the run: it has no new figures, or no end");
}

export function unreadable(): Failure {
  return new Failure("corrupt", "Cannot read the run's progress: is the server larder?");
}

/** The fields of a line; none for one that is no JSON. */
export function parsed(line: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(line));
  } catch {
    return {};
  }
}
