/** Processor time of a process by thread, in seconds, and the kernel's part of it all. */
export interface CpuTimes {
  readonly threads: ReadonlyMap<string, number>;
  readonly kernelSeconds: number;
}

/** The thread that answers requests. */
export const MAIN_THREAD = "main";

/** Linux counts in hundredths of a second, whatever the kernel's own clock. */
const TICKS_A_SECOND = 100;

/** Threads with less are left out. */
const SHARE_MIN = 0.02;

/** The times so far of a process. Those of threads that have ended are not among them. */
export function cpuTimesOf(pid: number): CpuTimes {
  const threads = new Map<string, number>();
  let kernelSeconds = 0;
  for (const { name: thread } of Deno.readDirSync(`/proc/${pid}/task`)) {
    const stat = statOf(`/proc/${pid}/task/${thread}/stat`);
    if (stat === undefined) continue;
    const name = Number(thread) === pid ? MAIN_THREAD : stat.name;
    threads.set(name, (threads.get(name) ?? 0) + stat.userSeconds + stat.kernelSeconds);
    kernelSeconds += stat.kernelSeconds;
  }
  return { threads, kernelSeconds };
}

/** The time of a process and of its threads that have ended. */
export function cpuSecondsOf(pid: number): number {
  const stat = statOf(`/proc/${pid}/stat`);
  return stat === undefined ? NaN : stat.userSeconds + stat.kernelSeconds;
}

export function cpuBetween(before: CpuTimes, after: CpuTimes): CpuTimes {
  const threads = [...after.threads].map(([name, seconds]) =>
    [name, Math.max(0, seconds - (before.threads.get(name) ?? 0))] as const
  );
  const kernelSeconds = after.kernelSeconds - before.kernelSeconds;
  return { threads: new Map(threads), kernelSeconds };
}

export function cpuSum(all: readonly CpuTimes[]): CpuTimes {
  const threads = new Map<string, number>();
  for (const one of all) {
    for (const [name, seconds] of one.threads) {
      threads.set(name, (threads.get(name) ?? 0) + seconds);
    }
  }
  return { threads, kernelSeconds: all.reduce((sum, one) => sum + one.kernelSeconds, 0) };
}

/** Shares such as "main 52 %, worker-1 30 %; 41 % of all in the kernel"; empty without any time. */
export function cpuShares({ threads, kernelSeconds }: CpuTimes): string {
  const all = [...threads.values()].reduce((sum, seconds) => sum + seconds, 0);
  if (all <= 0) return "";
  const percent = (seconds: number) => `${Math.round(100 * seconds / all)} %`;
  const shares = [...threads]
    .filter(([, seconds]) => seconds >= SHARE_MIN * all)
    .sort(([, a], [, b]) => b - a)
    .map(([name, seconds]) => `${name} ${percent(seconds)}`);
  return `${shares.join(", ")}; ${percent(kernelSeconds)} of all in the kernel`;
}

/** `undefined` for one that has ended. */
function statOf(path: string) {
  try {
    const stat = Deno.readTextFileSync(path);
    const end = stat.lastIndexOf(")");
    // Behind the name, which may hold spaces: user and system time are fields 14 and 15.
    const fields = stat.slice(end + 2).split(" ");
    return {
      name: stat.slice(stat.indexOf("(") + 1, end),
      userSeconds: Number(fields[11]) / TICKS_A_SECOND,
      kernelSeconds: Number(fields[12]) / TICKS_A_SECOND,
    };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
