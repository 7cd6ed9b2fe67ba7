import { procText } from "./proc_text.ts";

/**
 * How long the main threads of these processes have been ready to run without a processor, in ms.
 * That is the cost of a busy machine so far. 0 where the system does not count it.
 */
export function processorWaitMs(pids: readonly number[]): number {
  const lines = pids.map((pid) => procText(`/proc/${pid}/schedstat`).trim());
  const waited = lines.map((line) => Number(line.split(" ")[1] ?? 0) / 1e6);
  return waited.reduce((sum, ms) => sum + ms, 0);
}
