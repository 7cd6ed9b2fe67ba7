import { MARK_NAME } from "../../src/storage/storage_mark.ts";
import { bytesBelow } from "../../tests/support/bytes_below.ts";
import type { LarderProcess, LogLine } from "../../tests/support/larder_process.ts";

/** The state of the process and its folder at one moment. */
export interface Sample {
  readonly seconds: number;
  readonly residentBytes: number;
  readonly handles: number;
  /** Open files without a name. */
  readonly deleted: number;
  readonly diskBytes: number;
}

const KIB = 1024;
/** Counting is repeated if files moved meanwhile. */
const DISK_LOOKS_MAX = 5;

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

  look(larder: LarderProcess): void {
    this.#readLog(larder);
    try {
      const status = Deno.readTextFileSync(`/proc/${larder.pid}/status`);
      const handles = handlesOf(larder.pid);
      this.samples.push({
        seconds: (performance.now() - this.#startedAtMs) / 1_000,
        residentBytes: Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(status)?.[1]) * KIB,
        handles: handles.length,
        deleted: handles.filter((target) => target.endsWith(" (deleted)")).length,
        diskBytes: this.#diskBytes(larder.storage),
      });
    } catch (error) {
      // It was killed just now.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  #diskBytes(storage: string): number {
    let least = Infinity;
    for (let look = 0; look < DISK_LOOKS_MAX && least > this.#limitBytes; look++) {
      least = Math.min(least, narBytes(storage));
    }
    return least;
  }

  #readLog({ lines }: LarderProcess): void {
    // Removed, as a soak's log does not fit into memory.
    for (const line of lines.splice(0)) {
      if (line.level !== "error") continue;
      const known = this.errors.get(line.msg) ?? { count: 0, example: line };
      known.count++;
      this.errors.set(line.msg, known);
    }
  }
}

/** Of all NAR files, running downloads included. The mark in their folder is no NAR file. */
function narBytes(storage: string): number {
  const markBytes = bytesBelow(`${storage}/nar/${MARK_NAME}`);
  return bytesBelow(`${storage}/nar`) - markBytes + bytesBelow(`${storage}/tmp`);
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
