import { messageOf } from "../base/failure.ts";
import type { RowSweeper, SweptRows } from "../metadata/row_sweeper.ts";
import { clock } from "../runtime/current.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Touches } from "./touches.ts";

/** Rows of a kind in one transaction: it stops the thread for some 2 ms. */
const ROWS_MAX = 32;

/** The age at which a run writes the uses again, so that it finds the unused rows. */
const TOUCHES_AGE_MAX_MS = 1_000;

export interface MetadataRetentionDeps {
  readonly metadata: RowSweeper;
  readonly touches: Pick<Touches, "flush">;
  /** NARs that are read or downloaded keep their rows. */
  readonly reads: Pick<ActiveReads, "names">;
  /** Settles the protection; no sweep may come before that. */
  readonly protect: () => Promise<void>;
  /** larder removes rows without a use in this time. */
  readonly retentionMs: number;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/**
 * Removes unused rows that no kept file or pin needs, so that the database stays small. The batches
 * are small too, so that requests go on between them.
 */
export class MetadataRetention implements AsyncDisposable {
  readonly #deps: MetadataRetentionDeps;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(deps: MetadataRetentionDeps) {
    this.#deps = deps;
  }

  /** Removes all unused rows; joins a running sweep. Never throws. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => this.#running = undefined);
    return this.#running;
  }

  /** Ends a sweep after its batch. */
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
    const { metadata, touches, reads, protect, retentionMs, nowMs } = this.#deps;
    const unusedSinceMs = nowMs() - retentionMs;
    const order = { unusedSinceMs, rowsMax: ROWS_MAX };
    let after = "";
    for (let flushedAtMs = -Infinity; !this.#stop.signal.aborted;) {
      if (nowMs() - flushedAtMs > TOUCHES_AGE_MAX_MS) {
        await touches.flush();
        flushedAtMs = nowMs();
      }
      const startedAtMs = clock.nowMs();
      const swept = await metadata.sweepRows({ ...order, spared: reads.names(), after });
      if (!swept.settled) await protect();
      add(swept);
      if (swept.next === undefined) return;
      after = swept.next;
      await clock.pauseBehindBatch(clock.nowMs() - startedAtMs, this.#stop.signal);
    }
  }
}
