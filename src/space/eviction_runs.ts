import pLimit from "p-limit";
import { Failure, messageOf } from "../base/failure.ts";
import type { NarFinder } from "../metadata/metadata_store.ts";
import type { SpaceKeeper } from "../metadata/space_keeper.ts";
import type { NarName } from "../nix/nar_name.ts";
import { clock } from "../runtime/current.ts";
import { STORAGE } from "../telemetry/events.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import type { Accounts } from "./accounts.ts";
import type { ActiveReads } from "./active_reads.ts";
import { type Evictor, NO_FIGURES, type Run, type RunFigures } from "./evictor.ts";
import type { GcDone } from "./gc_event.ts";
import { limitOrigin, moreRoomHint, type SeenBytes } from "./size_limit.ts";

export interface EvictionRunsDeps {
  readonly evictor: Pick<Evictor, "run" | "stop">;
  readonly accounts: Accounts;
  readonly metadata: Pick<NarFinder, "findNar"> & SpaceKeeper;
  readonly reads: Pick<ActiveReads, "names">;
  readonly nowMs: () => number;
  readonly log: Logger;
  /** Called after each run that evicted. */
  readonly observe: (figures: RunFigures & { readonly durationMs: number }) => void;
}

export interface RunOutcome {
  readonly done: GcDone;
  readonly end: RunEnd;
  /** Bytes in the storage at the end. */
  readonly seen: SeenBytes;
  /** Why the run failed; `undefined`: it did not. */
  readonly failure: unknown;
}

/** Eviction runs, one at a time. Each run logs its result. */
export class EvictionRuns {
  readonly #deps: EvictionRunsDeps;
  readonly #oneAtATime = pLimit(1);
  readonly #outage;
  /** The target of the last run that had to reach one and did not. */
  #missedBytes = Infinity;

  constructor(deps: EvictionRunsDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "eviction-suffices");
  }

  /** Evicts, and resolves to the outcome. Never throws: it logs errors. */
  run(run: Run): Promise<RunOutcome> {
    return this.#oneAtATime(async () => {
      const { evictor, nowMs, observe, log } = this.#deps;
      const startedAtMs = nowMs();
      let figures = NO_FIGURES;
      const progress = (now: RunFigures) => run.progress(figures = now);
      let end: RunEnd = "cut short";
      let failure: unknown;
      try {
        end = await evictor.run({ ...run, progress });
        if (end === "storage away") failure = storageAway();
      } catch (error) {
        failure = error;
        log.event("eviction-failed", { error: messageOf(error) });
      }
      const { seen } = this.#deps.accounts.budget;
      const durationMs = nowMs() - startedAtMs;
      if (figures.evictedEntries > 0) observe({ ...figures, durationMs });
      const done = await this.#done(figures, run.targetBytes(), false);
      this.#report(run, { done, end }, durationMs);
      return { done, end, seen, failure };
    });
  }

  /** Ends the outage of a missed target where less is used by now, as after a DELETE. */
  usageObserved(): void {
    if (this.#deps.accounts.budget.usedBytes <= this.#missedBytes) this.#outage.worked();
  }

  /** The outcome of a run down to `targetBytes`. Evicts nothing. */
  dryRun(targetBytes: number): Promise<GcDone> {
    return this.#oneAtATime(async () => {
      const { accounts } = this.#deps;
      const { budget } = accounts;
      await accounts.protect();
      const figures = await dryRun(this.#deps, budget.usedBytes - targetBytes);
      return await this.#done(figures, targetBytes, true);
    });
  }

  /** Ends the current run after its batch; resolves when it is over. */
  async stop(): Promise<void> {
    this.#deps.evictor.stop();
    await this.#oneAtATime(() => undefined);
  }

  async #done(figures: RunFigures, targetBytes: number, dry: boolean): Promise<GcDone> {
    const { budget } = this.#deps.accounts;
    const { limit, limitBytes, reservedBytes, pinnedBytes } = budget;
    const usedBytes = budget.usedBytes - (dry ? figures.freedBytes : 0);
    const busyBytes = await this.#busyBytes();
    return {
      event: "done",
      dryRun: dry,
      targetBytes,
      limitBytes: limitBytes === Infinity ? null : limitBytes,
      limitSource: limit.source,
      ...figures,
      usedBytes,
      reservedBytes,
      pinnedBytes,
      busyBytes,
      reached: usedBytes <= targetBytes,
    };
  }

  /** Bytes in use by reads, for the log only: an unreadable database must not fail a run. */
  async #busyBytes(): Promise<number> {
    const { metadata, reads, log } = this.#deps;
    try {
      const nars = await Promise.all(
        [...reads.names()].map((narName) => metadata.findNar(narName)),
      );
      return nars.reduce((bytes, nar) => bytes + (nar?.kept?.fileSize ?? 0), 0);
    } catch (error) {
      log.event("busy-nars-not-counted", { error: messageOf(error) });
      return 0;
    }
  }

  /** Logs a missed target once, until the used or the pinned bytes change. */
  #report(
    run: Run,
    { done, end }: Pick<RunOutcome, "done" | "end">,
    durationMs: number,
  ): void {
    // Nothing needs the room of a run for an operator or for a prefetch.
    const isNeeded = run.usedBeforeMs === undefined && !run.isRequested;
    const facts = {
      freed_bytes: done.freedBytes,
      entries: done.evictedEntries,
      used_bytes: done.usedBytes,
      target_bytes: done.targetBytes,
      duration_ms: durationMs,
    };
    if (done.evictedEntries > 0 && (done.reached || !isNeeded)) {
      this.#deps.log.info("evicted", facts);
    }
    if (isNeeded ? done.reached : done.usedBytes <= this.#missedBytes) return this.#outage.worked();
    if (!isNeeded || end === "elsewhere") return;
    this.#missedBytes = done.targetBytes;
    this.#outage.failed("eviction-short", {
      ...facts,
      limit_bytes: done.limitBytes ?? "none",
      limit_from: limitOrigin(done.limitSource, this.#deps.accounts.budget.limit.reserveBytes),
      pinned_bytes: done.pinnedBytes,
      reserved_bytes: done.reservedBytes,
      busy_bytes: done.busyBytes,
      hint: moreRoomHint(done.limitSource),
    }, `${done.usedBytes} ${done.pinnedBytes}`);
  }
}

function storageAway(): Failure {
  return new Failure("unavailable", "Cannot evict: the store removes no file", { part: STORAGE });
}

/** Entries in one read: it stops the thread for a few milliseconds. */
const ENTRIES_MAX = 256;

interface DryRunDeps {
  readonly metadata: Pick<SpaceKeeper, "coldest">;
  readonly reads: Pick<ActiveReads, "names">;
}

/** The figures of an eviction of `bytesMin` bytes. The protection must be settled. */
async function dryRun(
  { metadata, reads }: DryRunDeps,
  bytesMin: number,
): Promise<RunFigures> {
  const spared = reads.names();
  const sharersLeft = new Map<NarName, number>();
  let [freedBytes, evictedEntries, evictedFiles] = [0, 0, 0];
  let after: string | undefined;
  while (freedBytes < bytesMin) {
    const page = await metadata.coldest(ENTRIES_MAX, after);
    after = page.at(-1)?.cursor;
    if (after === undefined) break;
    for (const { narName, keptBytes, sharers, storePathHash } of page) {
      if (freedBytes >= bytesMin) break;
      if (spared.has(narName)) continue;
      evictedEntries++;
      const left = storePathHash === undefined ? 0 : (sharersLeft.get(narName) ?? sharers) - 1;
      sharersLeft.set(narName, left);
      if (left > 0) continue;
      freedBytes += keptBytes;
      evictedFiles++;
    }
    await clock.pause(0);
  }
  return { freedBytes, evictedEntries, evictedFiles };
}

/** How an eviction run ended. */
export type RunEnd =
  | "reached"
  /** Nothing else may go. */
  | "exhausted"
  /** Another member evicts. */
  | "elsewhere"
  /** The store does not answer, or takes no change. */
  | "storage away"
  /** The run was stopped, or the disk or the database failed. */
  | "cut short";

/** The time after which larder tries a run again: the error may be over. */
const TRY_AGAIN_MS = 5_000;

interface RunConditions {
  /** The run spared entries that were in use. */
  readonly hadBusy: boolean;
  readonly nowMs: number;
  /** Bytes in the storage at the end of the run. */
  readonly seen: SeenBytes;
}

/** Remembers whether another eviction run would free nothing. */
export class FailedRuns {
  #untilMs = -Infinity;
  #hadBusy = false;
  #seen: SeenBytes | undefined;

  ended(end: RunEnd, { hadBusy, nowMs, seen }: RunConditions): void {
    this.#hadBusy = hadBusy;
    this.#seen = seen;
    if (end === "reached" || end === "elsewhere") this.#untilMs = -Infinity;
    else this.#untilMs = end === "exhausted" ? Infinity : nowMs + TRY_AGAIN_MS;
  }

  /** False as soon as the storage holds something else: another member may have changed it. */
  has(nowMs: number, seen: SeenBytes): boolean {
    return nowMs < this.#untilMs && this.#seen !== undefined && isSame(seen, this.#seen);
  }

  /** A file is no longer in use, and may go. */
  unused(): void {
    if (this.#hadBusy) this.changed();
  }

  /** A pin or an entry was added or removed. */
  changed(): void {
    this.#untilMs = -Infinity;
  }
}

/** Pending bytes count: a file that another member removes cannot go, its successor can. */
function isSame(a: SeenBytes, b: SeenBytes): boolean {
  return a.usedBytes === b.usedBytes && a.pinnedBytes === b.pinnedBytes &&
    a.pendingBytes === b.pendingBytes;
}
