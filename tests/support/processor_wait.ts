/**
 * How long the main threads of these processes have been ready to run without a processor, in ms.
 * That is the cost of a busy machine so far. 0 where the system does not count it.
 */
export function processorWaitMs(pids: readonly number[]): number {
  // These files are not for a test itself to read.
  const args = pids.map((pid) => `/proc/${pid}/schedstat`);
  const { stdout } = new Deno.Command("cat", { args, stderr: "null" }).outputSync();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  const waited = lines.map((line) => Number(line.split(" ")[1] ?? 0) / 1e6);
  return waited.reduce((sum, ms) => sum + ms, 0);
}
