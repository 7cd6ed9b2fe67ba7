import { messageOf } from "../base/failure.ts";
import { pause } from "../base/pause.ts";
import type { RowSweeper, SweptRows } from "../metadata/row_sweeper.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Uses } from "./uses.ts";

/** Rows of a kind in one transaction: some 2 ms in which no request is answered. */
const ROWS_MAX = 32;

/** No pause between batches is longer: a batch that took long has waited for the disk. */
const PAUSE_MAX_MS = 10;

/** How old the uses may become, within a run, by which unused rows are found. */
const USES_AGE_MAX_MS = 1_000;

export interface MetadataRetentionDeps {
  readonly metadata: RowSweeper;
  readonly uses: Pick<Uses, "flush">;
  /** What is being read or downloaded keeps its rows. */
  readonly reads: Pick<ActiveReads, "names">;
  /** Finds what pins protect; nothing is swept before that is known. */
  readonly protect: () => Promise<void>;
  /** Rows that nobody asked for in this time go. */
  readonly retentionMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/**
 * Keeps the database from growing for ever: removes rows that nobody asked for and that no kept
 * file or pin needs, in small batches, so that requests go on between them.
 */
export class MetadataRetention implements AsyncDisposable {
  readonly #deps: MetadataRetentionDeps;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(deps: MetadataRetentionDeps) {
    this.#deps = deps;
  }

  /** Removes all that is due; joins a run under way. Never throws. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => this.#running = undefined);
    return this.#running;
  }

  /** Ends a run after its batch. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { log, nowMs } = this.#deps;
    const startedAtMs = nowMs();
    const rows = { narinfos: 0, nars: 0, paths: 0 };
    try {
      await this.#sweep((swept) => {
        rows.narinfos += swept.narinfos.length;
        rows.nars += swept.nars.length;
        rows.paths += swept.paths;
      });
    } catch (error) {
      return log.warn("unused metadata not removed", { ...rows, error: messageOf(error) });
    }
    if (rows.narinfos + rows.nars + rows.paths === 0) return;
    log.info("unused metadata removed", { ...rows, duration_ms: nowMs() - startedAtMs });
  }

  async #sweep(add: (swept: SweptRows) => void): Promise<void> {
    const { metadata, uses, reads, protect, retentionMs, nowMs } = this.#deps;
    const unusedSinceMs = nowMs() - retentionMs;
    const order = { unusedSinceMs, rowsMax: ROWS_MAX };
    let after = "";
    for (let flushedAtMs = -Infinity; !this.#stop.signal.aborted;) {
      if (nowMs() - flushedAtMs > USES_AGE_MAX_MS) {
        await uses.flush();
        flushedAtMs = nowMs();
      }
      const startedAtMs = performance.now();
      const swept = await metadata.sweepRows({ ...order, spared: reads.names(), after });
      if (!swept.settled) await protect();
      add(swept);
      if (swept.next === undefined) return;
      after = swept.next;
      // Requests come first: they have at least half the time.
      const tookMs = Math.max(1, performance.now() - startedAtMs);
      await pause(Math.min(PAUSE_MAX_MS, tookMs), this.#stop.signal);
    }
  }
}
