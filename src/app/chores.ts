import { Cron } from "croner";
import { messageOf } from "../base/failure.ts";
import { MetadataRetention } from "../cache/metadata_retention.ts";
import { LOCAL_TIME, type Schedule, schedule as scheduleKind } from "../config/kinds/schedule.ts";
import type { RowSweeper } from "../metadata/metadata_store.ts";
import { clock, files } from "../runtime/current.ts";
import { BEAT_EVERY_MS } from "../space/recover.ts";
import type { Sweeper } from "../space/sweeper.ts";
import type { LocalSpool } from "../storage/local/local_spool.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { App } from "./build_app.ts";
import { LOOK_AT_DISK_EVERY_MS } from "./size_limit_of.ts";
import type { Stores } from "./stores.ts";

/** The pause between two looks at what other machines and the disk can do. */
const PROBE_EVERY_MS = 3_000;

/** One probe may wait for an answer while the next one begins. */
const PROBES_MAX = 3;

/** Delay of the search for dead members: their remains go within a minute of their death. */
const SETTLE_EVERY_MS = 10_000;

/** Longest delay until a late reference of a pin is protected. Eviction checks by itself. */
const REFRESH_EVERY_MS = 5_000;

/** Delay of the first retention run; a start has more urgent work. */
const FIRST_RETENTION_MS = 10 * 60 * 1_000;

/** Default without a schedule. */
const RETENTION_EVERY_MS = 24 * 3_600 * 1_000;

export interface ChoresDeps {
  readonly stores: Pick<Stores, "settle" | "probe" | "changes" | "nowMs"> & {
    readonly spool: Pick<LocalSpool, "restore" | "takeReceived">;
    readonly metadata: RowSweeper;
  };
  readonly app:
    & Pick<
      App,
      "reads" | "touches" | "disk" | "expireUploads" | "resume" | "reportToMembers" | "probe"
    >
    & {
      readonly space: Pick<App["space"], "beat" | "refresh" | "lookAtDisk" | "tidy" | "budget"> & {
        readonly sweeper: Pick<Sweeper, "sweepLeft">;
      };
    };
  /** Times of scheduled eviction and retention; `undefined`: none. */
  readonly schedule: ScheduledTimes | undefined;
  /** How long unused metadata stays; 0 is for ever. */
  readonly retentionMs: number;
  readonly storage: string;
  readonly metrics: FreeSpaceDeps["metrics"];
  readonly log: Logger;
}

/** Runs the periodic work beside the requests, until disposed of. */
export function startChores(deps: ChoresDeps): AsyncDisposable {
  const { stores, app, app: { space }, schedule, log } = deps;
  const { spool, changes } = stores;
  const retention = startRetention(deps);
  const refresh = () => void refreshed();
  const refreshed = async () => {
    await space.refresh();
    if (space.budget.databaseExcessBytes > 0) await retention.shrink();
  };
  const resume = () => void app.resume(spool.takeReceived());
  const settle = async () => {
    try {
      await stores.settle();
      await space.sweeper.sweepLeft();
    } catch (error) {
      log.event("dead-members-not-sought", { error: messageOf(error) });
    }
    resume();
    await app.expireUploads();
    refresh();
  };
  const beat = async () => {
    // Beside the heartbeat: where the database hangs, the report must hang too, and say so.
    void app.reportToMembers();
    await space.beat();
    restore(spool, log);
  };
  let probes = 0;
  const probe = async () => {
    if (probes >= PROBES_MAX) return;
    probes++;
    await Promise.all([stores.probe(), app.probe()]).finally(() => probes--);
  };
  // The memory cache subscribed first, so it is already dropped.
  const feed = changes.subscribe(refresh);
  refresh();
  resume();
  void app.reportToMembers();
  const freeSpace = sampleFreeSpace({ ...deps, disk: app.disk, path: deps.storage });
  const timers = [
    clock.every(BEAT_EVERY_MS, beat),
    clock.every(SETTLE_EVERY_MS, settle),
    clock.every(REFRESH_EVERY_MS, refresh),
    clock.every(LOOK_AT_DISK_EVERY_MS, () => space.lookAtDisk()),
    clock.every(PROBE_EVERY_MS, probe),
  ];
  const job = schedule && startSchedule(schedule, () => {
    log.info("scheduled eviction started", { schedule: scheduleKind.print(schedule.schedule) });
    space.tidy();
    void retention.run();
  });
  return {
    async [Symbol.asyncDispose]() {
      for (const timer of timers) timer.cancel();
      job?.[Symbol.dispose]();
      freeSpace[Symbol.dispose]();
      await feed[Symbol.asyncDispose]();
      await retention[Symbol.asyncDispose]();
    },
  };
}

/** Another process may have taken this one for dead while it was paused. */
function restore(spool: Pick<LocalSpool, "restore">, log: Logger): void {
  try {
    spool.restore();
  } catch (error) {
    log.debug("spool not restored", { error: messageOf(error) });
  }
}

/** Removes unused metadata once a day, or on the schedule. */
function startRetention({ stores, app, schedule, retentionMs, log }: ChoresDeps) {
  const protect = () => app.space.refresh();
  const { metadata, nowMs } = stores;
  const { reads, touches } = app;
  const excessBytes = async () => {
    await app.space.refresh();
    return app.space.budget.databaseExcessBytes;
  };
  const deps = { metadata, reads, touches, protect, retentionMs, excessBytes, nowMs, log };
  const retention = new MetadataRetention(deps);
  const run = () => void retention.run();
  const timers = schedule === undefined
    ? [clock.after(FIRST_RETENTION_MS, run), clock.every(RETENTION_EVERY_MS, run)]
    : [];
  return {
    run,
    shrink: () => retention.shrink(),
    async [Symbol.asyncDispose]() {
      for (const timer of timers) timer.cancel();
      await retention[Symbol.asyncDispose]();
    },
  };
}

const SAMPLE_EVERY_MS = 5_000;

interface FreeSpaceDeps {
  /** Path of the storage. */
  readonly path: string;
  readonly metrics: Pick<Metrics, "gauge">;
  /** Has them, too. */
  readonly disk: { freeBytes: number | undefined };
  readonly log: Pick<Logger, "debug">;
}

/**
 * Samples the free bytes of the storage's file system, until disposed of. Without
 * `--allow-sys=statfs` there is no gauge.
 */
function sampleFreeSpace({ path, metrics, disk, log }: FreeSpaceDeps): Disposable {
  let freeBytes: number | undefined;
  const sample = async () => {
    try {
      const bytes = (await files.room(path)).freeBytes;
      if (freeBytes === undefined) metrics.gauge("storage_free_bytes", {}, () => freeBytes ?? 0);
      freeBytes = disk.freeBytes = bytes;
    } catch (error) {
      // The last value stays: other log lines report a failing storage.
      log.debug("free space unknown", { error: messageOf(error) });
    }
  };
  void sample();
  const timer = clock.every(SAMPLE_EVERY_MS, sample);
  return { [Symbol.dispose]: () => timer.cancel() };
}

/** A schedule and its time zone. */
interface ScheduledTimes {
  readonly schedule: Schedule;
  readonly timezone: string;
}

/** Calls `work` at the times of a schedule, until disposed of. */
export function startSchedule(
  { schedule, timezone }: ScheduledTimes,
  work: () => void,
): Disposable {
  if (schedule.kind === "every") {
    const timer = clock.every(schedule.everyMs, work);
    return { [Symbol.dispose]: () => timer.cancel() };
  }
  const zone = timezone === LOCAL_TIME ? {} : { timezone };
  const job = new Cron(schedule.cron, zone, work);
  return { [Symbol.dispose]: () => job.stop() };
}
