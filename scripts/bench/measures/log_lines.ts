import { type AccessLine, logAccess } from "../../../src/http/pipeline/access_log.ts";
import { LineQueue } from "../../../src/telemetry/line_queue.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { cpuSecondsOf } from "../cpu_times.ts";
import type { Measure } from "../figure.ts";
import { LARDER } from "../server.ts";

const LINES_COUNT = 200_000;

/** The queue takes some five thousand before its writer has its turn. */
const LINES_AT_ONCE = 2_000;

const NAR = "1w1fff338fvdw53sqgamddn1b2xgds473pv6y13gizdbqjv4i5p3.nar.xz";

/** A client's request for a stored NAR: its line has twelve facts. */
const ACCESS: AccessLine = {
  method: "GET",
  path: `/nar/${NAR}`,
  route: "/nar/{name}",
  isNar: true,
  status: 200,
  bytes: 51_376,
  durationMs: 0.42,
  outcome: "complete",
  cacheResult: "HIT",
  requestId: "5f0c8f6e2b1d4a79",
  client: "127.0.0.1",
  token: undefined,
  more: { nar: NAR, name: "hello-2.12" },
};

const NAME = "log line of a NAR, until it is bytes: CPU each";
const MADE = `${NAME}, without its way into bytes`;

/** The best one counts: the process of the bench does other work, too. */
const RUNS = 3;

/** Log lines of requests, by the sources in the process of the bench. */
export const LOG_LINES: Measure = {
  figures: [
    { name: NAME, unit: "µs", target: { kind: "below", limit: 3 }, parts: [MADE] },
    { name: MADE, unit: "µs", target: { kind: "none" } },
  ],
  async prepare() {
    const queue = new LineQueue({ write: (bytes) => Promise.resolve(bytes.length) });
    const dropped = { write: () => undefined, flushed: () => Promise.resolve() };
    // The other servers have loggers of their own.
    return async ({ name }) => name === LARDER ? [await bestUs(queue), await bestUs(dropped)] : [];
  },
};

type Sink = Pick<LineQueue, "write" | "flushed">;

async function bestUs(sink: Sink): Promise<number> {
  let best = Infinity;
  for (let run = 0; run < RUNS; run++) best = Math.min(best, await lineUs(sink));
  return best;
}

async function lineUs(sink: Sink): Promise<number> {
  const log = createLogger("info", sink);
  const before = cpuSecondsOf(Deno.pid);
  for (let at = 0; at < LINES_COUNT; at += LINES_AT_ONCE) {
    for (let line = 0; line < LINES_AT_ONCE; line++) logAccess(log, "info", { ...ACCESS });
    await sink.flushed();
  }
  return 1_000_000 * (cpuSecondsOf(Deno.pid) - before) / LINES_COUNT;
}
