import type { Server } from "./server.ts";
import type { Workplace } from "./workplace.ts";

const SCRIPT = new URL("./requests.lua", import.meta.url).pathname;

/** Timeout of a run that should end by itself. */
const ONCE_MAX_S = 120;

export interface Load {
  readonly paths: readonly string[];
  readonly connections: number;
  /** "once": each path once, at full speed. */
  readonly seconds: number | "once";
  /** The required status of every answer. */
  readonly status: 200 | 404;
}

export interface LoadResult {
  readonly perSecond: number;
  /** Processor time of the server for each request, in microseconds. */
  readonly cpuUs: number;
  /** Time of 99 of 100 answers at most, in milliseconds; 0 of paths that are requested once. */
  readonly lateMs: number;
}

/** Loads one server with wrk's one thread. Throws if an answer was wrong. */
export async function runLoad(
  workplace: Workplace,
  server: Server,
  load: Load,
): Promise<LoadResult> {
  const before = server.cpuSeconds();
  const { count, seconds, lateMs } = await runWrk(workplace, server, load);
  return {
    perSecond: count / seconds,
    lateMs,
    cpuUs: 1_000_000 * (server.cpuSeconds() - before) / count,
  };
}

async function runWrk(
  workplace: Workplace,
  { url, name }: Server,
  { paths, connections, seconds, status }: Load,
): Promise<{ readonly count: number; readonly seconds: number; readonly lateMs: number }> {
  // Loads of several servers may run side by side.
  const file = `${workplace.folder}/paths-${new URL(url).port}.txt`;
  Deno.writeTextFileSync(file, paths.join("\n") + "\n");
  const [duration, mode] = seconds === "once" ? [ONCE_MAX_S, ["once"]] : [seconds, []];
  const output = await workplace.run({
    command: "wrk",
    args: [
      ...["-t", "1", "-c", String(connections), "-d", `${duration}s`],
      ...["-s", SCRIPT, url, "--", file, ...mode],
    ],
  });
  const match = /^result (\d+) (\d+) (\d+) (\d+) (\d+)$/m.exec(output);
  if (match === null) throw new Error(`Cannot read wrk's answer: ${output}`);
  const [count = 0, us = 0, refused = 0, broken = 0, lateUs = 0] = match.slice(1).map(Number);
  const refusedRightly = status === 200 ? 0 : count;
  if (broken > 0 || refused !== refusedRightly) {
    throw new Error(
      `Cannot measure ${name}: of ${count} requests ${refused} had another status than 200, ` +
        `${broken} no answer`,
    );
  }
  return { count, seconds: us / 1_000_000, lateMs: lateUs / 1_000 };
}
