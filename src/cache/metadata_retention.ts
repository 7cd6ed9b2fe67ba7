import { messageOf } from "../base/failure.ts";
import type { RowSweeper, SweptRows } from "../metadata/metadata_store.ts";
import { clock } from "../runtime/current.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Touches } from "./touches.ts";

/** Rows of a kind in one transaction: it stops the thread for some 2 ms. */
const ROWS_MAX = 32;

/** The age at which a run writes the uses again, so that it finds the unused rows. */
const TOUCHES_AGE_MAX_MS = 1_000;

/** A database that is too large loses rows that are unused for an eighth of the time before. */
const SHRINK_STEP = 8;

/** Rows that were used since stay: their client is still here. */
const SHRINK_AGE_MIN_MS = 60_000;

/** A database that pins and kept files fill stays so for a while. */
const SHRINK_EVERY_MS = 10 * 60_000;

/** Where rows stay for ever, the first step. */
const RETENTION_MAX_MS = 180 * 24 * 3_600_000;

export interface MetadataRetentionDeps {
  readonly metadata: RowSweeper;
  readonly touches: Pick<Touches, "flush">;
  /** NARs that are read or downloaded keep their rows. */
  readonly reads: Pick<ActiveReads, "names">;
  /** Settles the protection; no sweep may come before that. */
  readonly protect: () => Promise<void>;
  /** larder removes rows without a use in this time; 0: it keeps them. */
  readonly retentionMs: number;
  /** Reads how far the database is above its share of the size limit. */
  readonly excessBytes: () => Promise<number>;
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
  #shrunkAtMs = -Infinity;

  constructor(deps: MetadataRetentionDeps) {
    this.#deps = deps;
  }

  /** Removes all unused rows; joins a running sweep. Never throws. */
  run(): Promise<void> {
    const { retentionMs } = this.#deps;
    if (retentionMs === 0) return Promise.resolve();
    return this.#once(() => this.#run(retentionMs));
  }

  /**
   * Removes rows without NAR files before their time, the oldest first, while the database is above
   * its share of the size limit. Joins a running sweep. Never throws.
   */
  async shrink(): Promise<void> {
    const { nowMs } = this.#deps;
    if (nowMs() < this.#shrunkAtMs + SHRINK_EVERY_MS) return;
    this.#shrunkAtMs = nowMs();
    await this.#once(() => this.#shrink());
  }

  /** Ends a sweep after its batch. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  #once(run: () => Promise<void>): Promise<void> {
    return this.#running ??= run().finally(() => this.#running = undefined);
  }

  async #shrink(): Promise<void> {
    const { excessBytes, log } = this.#deps;
    const longestMs = this.#deps.retentionMs || RETENTION_MAX_MS;
    try {
      for (let ageMs = longestMs; ageMs >= SHRINK_AGE_MIN_MS; ageMs /= SHRINK_STEP) {
        if (this.#stop.signal.aborted || await excessBytes() <= 0) return;
        await this.#run(ageMs);
      }
    } catch (error) {
      log.event("unused-metadata-not-removed", { error: messageOf(error) });
    }
  }

  async #run(retentionMs: number): Promise<void> {
    const { log, nowMs } = this.#deps;
    const startedAtMs = nowMs();
    const rows = { narinfos: 0, nars: 0, paths: 0 };
    try {
      await this.#sweep(retentionMs, (swept) => {
        rows.narinfos += swept.narinfos.length;
        rows.nars += swept.nars.length;
        rows.paths += swept.paths;
      });
    } catch (error) {
      return log.event("unused-metadata-not-removed", { ...rows, error: messageOf(error) });
    }
    if (rows.narinfos + rows.nars + rows.paths === 0) return;
    log.info("unused metadata removed", { ...rows, duration_ms: nowMs() - startedAtMs });
  }

  async #sweep(retentionMs: number, add: (swept: SweptRows) => void): Promise<void> {
    const { metadata, touches, reads, protect, nowMs } = this.#deps;
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
