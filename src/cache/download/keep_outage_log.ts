import { type Facts, Failure } from "../../base/failure.ts";
import type { EventKind } from "../../telemetry/events.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import type { NotKeptBy } from "../nar/publish_nar.ts";

/**
 * The log of NAR files that this machine cannot keep. It says each reason once, until a file as
 * large as those that failed is kept. It counts every file.
 */
export class KeepOutageLog {
  readonly #log: Logger;
  readonly #disk;
  readonly #database;
  readonly #room;
  readonly #storage: Series;
  /** The store of NAR files has taken nothing since it failed. */
  #isStorageAway = false;

  constructor(log: Logger, metrics: Pick<Metrics, "series">) {
    const series = (reason: `${NotKeptBy}_error` | "no_room") =>
      metrics.series("nar_not_kept_total", { reason });
    this.#log = log;
    this.#disk = new NotKeptLog(new OutageLog(log, "nars-kept"), series("disk_error"));
    this.#database = new NotKeptLog(new OutageLog(log, "nars-recorded"), series("database_error"));
    this.#room = new NotKeptLog(new OutageLog(log, "nars-have-room"), series("no_room"));
    this.#storage = series("storage_error");
  }

  /** `by` failed. `fileSize`: of the file, or the bytes received so far. */
  failed(fileSize: number, by: NotKeptBy, facts: Facts): void {
    if (by === "disk") {
      this.#disk.failed(fileSize);
      this.#disk.log.failed("nars-not-kept", facts);
    } else if (by === "database") {
      this.#database.failed(fileSize);
      this.#database.log.failed("nars-not-recorded", facts);
    } else {
      // The store has said once for all NARs that it is away.
      this.#storage.count();
      this.#isStorageAway = true;
      this.#log.debug("nar store did not take nar", facts);
    }
  }

  /**
   * Pins, running downloads and the limit left no room for `fileSize` bytes. A smaller file than
   * all that failed before is logged again.
   */
  noRoom(fileSize: number, facts: Facts): void {
    // What it cannot remove takes the room.
    if (this.#isStorageAway) return this.failed(fileSize, "storage", facts);
    this.#room.failed(fileSize);
    this.#room.log.failed("nar-without-room", facts, String(this.#room.smallestBytes));
  }

  /**
   * Tries again what failed, without a client. `store` must keep something where `bytes` have room;
   * `fits` says whether the limit leaves room for them. Never rejects.
   */
  async probe({ store, fits }: KeepTrials): Promise<void> {
    if (this.#isStorageAway) {
      await store(0).then(() => this.#isStorageAway = false, () => undefined);
    }
    await this.#disk.probe(store);
    await this.#database.probe(store);
    await this.#room.probe(async (bytes) => {
      if (!await fits(bytes)) throw new Failure("unavailable", "Cannot keep NAR: no room for it");
    });
  }

  kept(fileSize: number): void {
    this.#isStorageAway = false;
    this.#disk.kept(fileSize);
    this.#database.kept(fileSize);
    this.#room.kept(fileSize);
  }
}

export interface KeepTrials {
  readonly store: (bytes: number) => Promise<void>;
  readonly fits: (bytes: number) => Promise<boolean>;
}

/** One reason, and the smallest file that failed for it. */
class NotKeptLog<End extends EventKind> {
  readonly log: OutageLog<End>;
  readonly #count: Series;
  #smallestBytes = Infinity;

  constructor(log: OutageLog<End>, count: Series) {
    this.log = log;
    this.#count = count;
  }

  get smallestBytes(): number {
    return this.#smallestBytes;
  }

  failed(fileSize: number): void {
    this.#count.count();
    this.#smallestBytes = Math.min(this.#smallestBytes, fileSize);
  }

  async probe(attempt: (bytes: number) => Promise<void>): Promise<void> {
    const bytes = this.#smallestBytes;
    await this.log.probe(() => attempt(Number.isFinite(bytes) ? bytes : 0));
    if (!this.log.isPresent && bytes === this.#smallestBytes) this.#smallestBytes = Infinity;
  }

  kept(fileSize: number): void {
    // A small file may fit where a large one does not.
    if (fileSize < this.#smallestBytes) return;
    this.#smallestBytes = Infinity;
    this.log.worked();
  }
}
