/** An idle connection costs some 10 KiB; more than this are no clients of one cache. */
const CONNECTIONS_MAX = 8_192;

/** The rest of the file handles is for NAR files, downloads, upstreams and the database. */
const SHARE_OF_HANDLES = 0.5;

/** Where the system does not tell: what Linux gives a process at least. */
const HANDLES_MAX_UNKNOWN = 1_024;

/** How many connections may be open at the same time on this machine. */
export function connectionsMax(
  readText: (path: string) => string = (path) => Deno.readTextFileSync(path),
): number {
  return Math.min(CONNECTIONS_MAX, Math.floor(handlesMax(readText) * SHARE_OF_HANDLES));
}

function handlesMax(readText: (path: string) => string): number {
  try {
    const limits = readText("/proc/self/limits");
    const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? [];
    return soft === "unlimited" ? Infinity : Number(soft ?? HANDLES_MAX_UNKNOWN);
  } catch {
    return HANDLES_MAX_UNKNOWN;
  }
}
