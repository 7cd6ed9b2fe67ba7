import type { Facts } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import { Trouble, type TroubleWords } from "../../telemetry/trouble.ts";

const OVER = "nars are kept again";

const DISK: TroubleWords = {
  level: "error",
  begun: "nars cannot be kept: they are passed on",
  over: OVER,
};

const NO_ROOM: TroubleWords = { level: "warn", begun: "nar not kept", over: OVER };

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
    this.#disk = new Outage(new Trouble(log, DISK), series("disk_error"));
    this.#room = new Outage(new Trouble(log, NO_ROOM), series("no_room"));
  }

  /** The disk failed. `fileSize`: of the file, or as much as there was of it. */
  failed(fileSize: number, facts: Facts): void {
    this.#disk.met(fileSize, facts);
  }

  /**
   * Pins, running downloads and the limit left no room for `fileSize` bytes. After a large file,
   * one that is smaller than all before is news.
   */
  noRoom(fileSize: number, facts: Facts): void {
    this.#room.met(fileSize, facts, fileSize < this.#room.smallestBytes);
  }

  kept(fileSize: number): void {
    this.#disk.kept(fileSize);
    this.#room.kept(fileSize);
  }
}

/** One reason, and the smallest file that failed for it. */
class Outage {
  readonly #trouble: Trouble;
  readonly #notKept: Series;
  #smallestBytes = Infinity;

  constructor(trouble: Trouble, notKept: Series) {
    this.#trouble = trouble;
    this.#notKept = notKept;
  }

  get smallestBytes(): number {
    return this.#smallestBytes;
  }

  met(fileSize: number, facts: Facts, isNews = false): void {
    this.#notKept.count();
    this.#smallestBytes = Math.min(this.#smallestBytes, fileSize);
    this.#trouble.met(facts, isNews);
  }

  kept(fileSize: number): void {
    // Where a large file has no room there may be some for a small one.
    if (fileSize < this.#smallestBytes) return;
    this.#smallestBytes = Infinity;
    this.#trouble.over();
  }
}
