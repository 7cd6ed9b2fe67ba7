/** The most memory that this process has had resident so far (Linux). */
export function peakBytes(): number {
  const status = Deno.readTextFileSync("/proc/self/status");
  return 1_024 * Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]);
}
