import type { Facts } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import { type OutageLine, OutageLog } from "../../telemetry/outage_log.ts";

const OVER = "nars are kept again";

const DISK: OutageLine = { level: "error", message: "nars cannot be kept: they pass through" };

const NO_ROOM: OutageLine = { level: "warn", message: "nar not kept" };

/**
 * The log of NAR files that this machine cannot keep. It says each reason once, until a file as
 * large as those that failed is kept. Every file is counted.
 */
export class KeepOutageLog {
  readonly #disk: Outage;
  readonly #room: Outage;

  constructor(log: Logger, metrics: Pick<Metrics, "series">) {
    const series = (reason: "disk_error" | "no_room") =>
      metrics.series("nar_not_kept_total", { reason });
    this.#disk = new Outage(log, series("disk_error"));
    this.#room = new Outage(log, series("no_room"));
  }

  /** The disk failed. `fileSize`: of the file, or the bytes received so far. */
  failed(fileSize: number, facts: Facts): void {
    this.#disk.failed(fileSize);
    this.#disk.log.failed(DISK, facts);
  }

  /**
   * Pins, running downloads and the limit left no room for `fileSize` bytes. A smaller file than
   * all that failed before is logged again.
   */
  noRoom(fileSize: number, facts: Facts): void {
    this.#room.failed(fileSize);
    this.#room.log.failed(NO_ROOM, facts, String(this.#room.smallestBytes));
  }

  kept(fileSize: number): void {
    this.#disk.kept(fileSize);
    this.#room.kept(fileSize);
  }
}

/** One reason, and the smallest file that failed for it. */
class Outage {
  readonly log: OutageLog;
  readonly #notKept: Series;
  #smallestBytes = Infinity;

  constructor(log: Logger, notKept: Series) {
    this.log = new OutageLog(log, OVER);
    this.#notKept = notKept;
  }

  get smallestBytes(): number {
    return this.#smallestBytes;
  }

  failed(fileSize: number): void {
    this.#notKept.count();
    this.#smallestBytes = Math.min(this.#smallestBytes, fileSize);
  }

  kept(fileSize: number): void {
    // A small file may fit where a large one does not.
    if (fileSize < this.#smallestBytes) return;
    this.#smallestBytes = Infinity;
    this.log.worked();
  }
}
