import { MARK_NAME } from "../../src/storage/storage_mark.ts";
import { bytesBelow } from "../../tests/support/bytes_below.ts";
import type { LarderProcess, LogLine } from "../../tests/support/larder_process.ts";

/** Allowed growth of the last third over the second: the garbage collector's swing. */
const GROWTH_MAX = 1.1;
/** Smaller differences of memory are noise. */
const GROWTH_BYTES_MIN = 16 << 20;
const MIB = 1 << 20;
const WRONGS_MAX = 20;
/** Counting is repeated if files moved meanwhile. */
const DISK_LOOKS_MAX = 5;

/** Counts of the clients' results, and of forbidden ones. */
export class Tally {
  readonly counts = new Map<string, number>();
  /** Descriptions of the first faults. */
  readonly wrongs: string[] = [];
  wrongCount = 0;

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  wrong(what: string): void {
    if (this.wrongCount++ < WRONGS_MAX) this.wrongs.push(what);
  }
}

/** The state of a process and its folder at one moment. */
interface Sample {
  readonly seconds: number;
  readonly residentBytes: number;
  readonly handles: number;
  /** Open files without a name. */
  readonly deleted: number;
  readonly diskBytes: number;
}

/** Samples larder, and collects the errors of its log. */
export class Monitor {
  readonly samples: Sample[] = [];
  /** Errors by message, with their number and one example. */
  readonly errors = new Map<string, { count: number; readonly example: LogLine }>();
  readonly #limitBytes: number;
  readonly #startedAtMs = performance.now();

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  look({ pid, storage, lines }: LarderProcess): void {
    // Removed, as a soak's log does not fit into memory.
    for (const line of lines.splice(0)) {
      if (line.level !== "error") continue;
      const known = this.errors.get(line.msg) ?? { count: 0, example: line };
      known.count++;
      this.errors.set(line.msg, known);
    }
    try {
      const status = Deno.readTextFileSync(`/proc/${pid}/status`);
      const handles = handlesOf(pid);
      this.samples.push({
        seconds: (performance.now() - this.#startedAtMs) / 1_000,
        residentBytes: Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(status)?.[1]) * 1_024,
        handles: handles.length,
        deleted: handles.filter((target) => target.endsWith(" (deleted)")).length,
        diskBytes: this.#diskBytes(storage),
      });
    } catch (error) {
      // It was killed just now.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  /** Of all NAR files, running downloads included. The mark in their folder is no NAR file. */
  #diskBytes(storage: string): number {
    let least = Infinity;
    for (let look = 0; look < DISK_LOOKS_MAX && least > this.#limitBytes; look++) {
      const markBytes = bytesBelow(`${storage}/nar/${MARK_NAME}`);
      const bytes = bytesBelow(`${storage}/nar`) - markBytes + bytesBelow(`${storage}/tmp`);
      least = Math.min(least, bytes);
    }
    return least;
  }
}

/** The target of each open handle. */
function handlesOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  return [...Deno.readDirSync(folder)].flatMap(({ name }) => {
    try {
      return [Deno.readLinkSync(`${folder}/${name}`)];
    } catch (error) {
      // Closed in between.
      if (error instanceof Deno.errors.NotFound) return [];
      throw error;
    }
  });
}

export interface Outcome {
  readonly tally: Tally;
  readonly monitor: Monitor;
  readonly limitBytes: number;
  /** The faults of larders and of what they share. With any, memory belongs to many processes. */
  readonly harms: ReadonlyMap<string, number>;
  /** The problems found at the end. */
  readonly endProblems: readonly string[];
}

/** The table of a soak, whose last sample is of an idle larder, and all problems. */
export function report({ tally, monitor, limitBytes, harms, endProblems }: Outcome) {
  const { samples, errors } = monitor;
  const most = (of: keyof Sample) => Math.max(...samples.map((sample) => sample[of]));
  const course = (of: keyof Sample) => [samples.at(0)?.[of] ?? NaN, most(of), samples.at(-1)?.[of]];
  const thirds = [0, 1, 2].map((third) => {
    const size = Math.ceil(samples.length / 3);
    const part = samples.slice(third * size, (third + 1) * size);
    return part.reduce((sum, one) => sum + one.residentBytes, 0) / Math.max(1, part.length);
  });
  const [, second = 0, last = 0] = thirds;
  const diskMost = most("diskBytes");
  const deleted = samples.at(-1)?.deleted ?? NaN;
  const wrongs = [...tally.wrongs, ...endProblems];
  if (tally.wrongCount > tally.wrongs.length) wrongs.push(`${tally.wrongCount} wrongs in all`);
  if (diskMost > limitBytes) wrongs.push(`${diskMost} bytes on disk, at most ${limitBytes}`);
  const isGrowing = last > second * GROWTH_MAX && last - second > GROWTH_BYTES_MIN;
  if (harms.size === 0 && isGrowing) {
    wrongs.push(`memory grows: ${mib(second)} in the second third, ${mib(last)} in the last`);
  }
  if (deleted > 0) wrongs.push(`${deleted} files without a name are open at the end`);
  const rows: readonly (readonly [string, string | number])[] = [
    ["wrong answers", tally.wrongCount],
    ["outcomes", [...tally.counts.values()].reduce((sum, count) => sum + count, 0)],
    ["memory: start, most, end", course("residentBytes").map(mib).join(", ")],
    ["memory: mean of each third", thirds.map(mib).join(", ")],
    ["handles: start, most, end", course("handles").join(", ")],
    ["open files without a name: end", deleted],
    ["disk: most, limit", [diskMost, limitBytes].map(mib).join(", ")],
    ...harms,
    ...[...tally.counts].toSorted(),
    ...[...errors].map(([msg, { count, example }]) => (
      [`log: ${msg}`, `${count}, such as ${JSON.stringify(example)}`] as const
    )),
  ];
  const lines = ["| Figure | |", "| --- | --- |", ...rows.map((row) => `| ${row.join(" | ")} |`)];
  return { text: lines.join("\n"), wrongs };
}

export function mib(bytes = NaN): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
