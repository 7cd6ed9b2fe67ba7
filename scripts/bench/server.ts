import { cpuSecondsOf, cpuSum, type CpuTimes, cpuTimesOf } from "./cpu_times.ts";
import type { Served, Workplace } from "./workplace.ts";

/** The measured larder. */
export const LARDER = "larder";
/** Its reference: nginx as a caching proxy. */
export const PROXY = "nginx proxy_cache";
/** nginx with the files themselves. */
export const DIRECTORY = "nginx directory";
/** The cache that BENCH_PEER names. */
export const PEER = "peer";

/** A running server. */
export interface Server extends AsyncDisposable {
  readonly name: string;
  /** The server's URL, without a final slash. */
  readonly url: string;
  /** The resident memory, in bytes, of its largest process. */
  residentBytes(): number;
  /** The parts of that. */
  residentParts(): ResidentParts;
  /** The highest resident memory so far. */
  peakBytes(): number;
  /** Processor time so far, of all its processes and threads. */
  cpuSeconds(): number;
  /** The same by thread. */
  cpuTimes(): CpuTimes;
}

/** The resident memory of a process, in bytes. */
export interface ResidentParts {
  /** Pages of files: the executable, and others that the process maps. */
  readonly files: number;
  /** Pages of the process alone: heaps, stacks, buffers. */
  readonly own: number;
}

/** Starts one of the servers with its data below `folder`. */
export interface Launcher {
  readonly name: string;
  /** Resolves with the first right answer. May reuse a folder. */
  launch(folder: string): Promise<Server>;
}

const START_MAX_MS = 20_000;
const LOOK_EVERY_MS = 1;

export interface LaunchParts extends Served {
  readonly name: string;
  readonly port: number;
}

/** Starts a process and waits until it answers `/nix-cache-info`. */
export async function launchProcess(workplace: Workplace, parts: LaunchParts): Promise<Server> {
  const { name, port } = parts;
  const url = `http://127.0.0.1:${port}`;
  const child = workplace.start(parts);
  let ended = false;
  child.status.then(() => ended = true);
  const startedAtMs = performance.now();
  while (!await answers(url)) {
    if (ended) throw new Error(`Cannot start ${name}: it ended at once`);
    if (performance.now() - startedAtMs > START_MAX_MS) {
      throw new Error(`Cannot start ${name}: no answer within ${START_MAX_MS} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return {
    name,
    url,
    residentBytes: () => memoryOf(largestOf(child.pid), "VmRSS"),
    residentParts: () => {
      const pid = largestOf(child.pid);
      return { files: memoryOf(pid, "RssFile"), own: memoryOf(pid, "RssAnon") };
    },
    peakBytes: () => Math.max(...family(child.pid).map((pid) => memoryOf(pid, "VmHWM"))),
    cpuSeconds: () => family(child.pid).reduce((total, pid) => total + cpuSecondsOf(pid), 0),
    cpuTimes: () => cpuSum(family(child.pid).map(cpuTimesOf)),
    [Symbol.asyncDispose]: () => workplace.stop(child),
  };
}

/** A port without a listener. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/nix-cache-info`);
    await response.bytes();
    return response.ok;
  } catch {
    return false;
  }
}

/** The process and its children. */
function family(pid: number): number[] {
  const children = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`);
  return [pid, ...children.split(" ").filter(Boolean).map(Number)];
}

/** The one with the most resident memory. */
function largestOf(pid: number): number {
  const [first = pid, ...others] = family(pid);
  return others.reduce(
    (largest, one) => memoryOf(one, "VmRSS") > memoryOf(largest, "VmRSS") ? one : largest,
    first,
  );
}

function memoryOf(pid: number, field: "VmRSS" | "VmHWM" | "RssFile" | "RssAnon"): number {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return 1_024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? NaN);
}
