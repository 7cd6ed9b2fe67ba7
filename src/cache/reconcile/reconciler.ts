import { messageOf } from "../../base/failure.ts";
import { NO_OTHER_MEMBERS, type WorkLeases } from "../../locks/work_leases.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import { type ShardComparer, shardsWhile } from "./compare_shard.ts";
import type { Repairer } from "./repairer.ts";

/** The pause between two shards of a background pass: all 1,024 take three hours. */
const BACKGROUND_PAUSE_MS = 10_000;

/** The longest comparison of a large shard. Behind a longer one the pass takes small shards. */
const QUICK_MS = 20;

/** The pause before a pass that failed begins again: what failed may work by then. */
const RETRY_PAUSE_MS = 5_000;

/** Below this many missing files, a pass does not suspect an unmounted disk. */
const LOST_MIN = 100;

export interface ReconcilerDeps {
  readonly comparer: StorageComparer;
  readonly repairer: Pick<Repairer, "repair">;
  /** Called after the quick pass of the start. */
  readonly firstPassOver: () => void;
  /** Called after a repair. */
  readonly changed: () => Promise<void>;
  /** Default: there are no other members. */
  readonly leases?: Pick<WorkLeases, "repair"> | undefined;
  readonly nowMs: () => number;
  readonly log: Logger;
}

export interface StorageComparer extends ShardComparer {
  /**
   * True for few files. Then the pass of the start begins with 32 large shards: each costs some
   * 0.3 ms of processor time, files or not. Default: false.
   */
  readonly isSmall?: boolean;
}

interface Pass {
  /** True to compare the size of each file too. */
  readonly sizes: boolean;
  /** Pause between two shards. */
  readonly pauseMs: number;
}

/** The result of a pass over all shards. */
export interface Reconciled {
  readonly files: number;
  readonly mended: number;
  /** False for a pass that ended early. */
  readonly complete: boolean;
}

/** Compares all files with all rows, by shard: names at start, later sizes too. */
export class Reconciler implements AsyncDisposable {
  readonly #deps: ReconcilerDeps;
  readonly #outage;
  readonly #stop = new AbortController();
  /** True while files or rows cannot be read: the first shard that can be ends that. */
  #isUnreadable = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(deps: ReconcilerDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "reconciliation-works");
  }

  /** One quick pass, then slow ones for as long as larder runs. */
  start(): void {
    const work = async () => {
      const { signal } = this.#stop;
      for (let isFirst = true; !signal.aborted;) {
        // After a failure at full speed, since a slow pass takes hours.
        const isQuick = isFirst || this.#outage.isPresent;
        await this.#passLeased({ sizes: !isFirst, pauseMs: isQuick ? 0 : BACKGROUND_PAUSE_MS });
        if (this.#outage.isPresent) {
          await clock.pause(RETRY_PAUSE_MS, signal);
          continue;
        }
        if (isFirst) this.#deps.firstPassOver();
        isFirst = false;
        await clock.pause(BACKGROUND_PAUSE_MS, signal);
      }
    };
    this.#running = work();
  }

  /** A pass of this member, if it has the lease: each member would find the same. */
  async #passLeased(pass: Pass): Promise<void> {
    const { leases = NO_OTHER_MEMBERS } = this.#deps;
    await using lease = await leases.repair();
    if (lease.kind === "ours") await this.pass(pass);
    // The other member tells what it cannot read.
    else this.#worked();
  }

  /** Compares every shard once, and repairs. Never throws: failures are logged. */
  async pass({ sizes, pauseMs }: Pass): Promise<Reconciled> {
    const { comparer, repairer, changed, nowMs, log } = this.#deps;
    const { signal } = this.#stop;
    const startedAtMs = nowMs();
    let [files, lost, mended] = [0, 0, 0];
    let isQuick = comparer.isSmall === true && !sizes;
    try {
      for (const shard of shardsWhile(() => isQuick)) {
        if (signal.aborted) return { files, mended, complete: false };
        const beganAtMs = nowMs();
        const comparison = await comparer.compare(shard, sizes);
        isQuick &&= nowMs() - beganAtMs <= QUICK_MS;
        await clock.pause(0);
        files += comparison.files;
        lost += comparison.lost.length;
        if (lost > LOST_MIN && lost > files) {
          // An unmounted disk is more likely than the loss of that many files.
          const facts = { missing: lost, found: files };
          this.#isUnreadable = false;
          this.#outage.failed("most-nars-missing", facts);
          return { files, mended, complete: false };
        }
        const count = await repairer.repair(comparison, { signal });
        if (this.#isUnreadable) this.#worked();
        if (count > 0) await changed();
        mended += count;
        if (pauseMs > 0) await clock.pause(pauseMs, signal);
      }
      this.#worked();
      log.info("reconciled", { files, mended, sizes, duration_ms: nowMs() - startedAtMs });
      return { files, mended, complete: true };
    } catch (error) {
      if (!signal.aborted) {
        this.#isUnreadable = true;
        this.#outage.failed("not-reconciled", { error: messageOf(error) });
      }
      return { files, mended, complete: false };
    }
  }

  #worked(): void {
    this.#isUnreadable = false;
    this.#outage.worked();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}
