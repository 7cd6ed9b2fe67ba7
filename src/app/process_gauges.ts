import { cpuUsage } from "node:process";
import type { Metrics } from "../telemetry/metrics.ts";

/** Registers the gauges of the process, and the build info. */
export function readProcess(metrics: Metrics, version: string): void {
  metrics.gauge("build_info", { version, deno: Deno.version.deno }, () => 1);
  metrics.gauge("process_start_time_seconds", {}, () => performance.timeOrigin / 1_000);
  metrics.gauge("process_cpu_seconds_total", {}, () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1_000_000;
  });
  metrics.gauge("process_resident_memory_bytes", {}, () => Deno.memoryUsage().rss);
  metrics.gauge("process_heap_bytes", {}, () => Deno.memoryUsage().heapUsed);
  metrics.gauge("process_open_fds", {}, openFiles);
}

function openFiles(): number {
  try {
    return [...Deno.readDirSync("/proc/self/fd")].length;
  } catch {
    // Other systems than Linux.
    return 0;
  }
}
