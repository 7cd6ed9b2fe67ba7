import type { Facts } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import { Trouble } from "../../telemetry/trouble.ts";

/**
 * NAR files that this machine cannot keep, because its disk is full say: logged once, until one
 * as large as those that failed is kept.
 */
export class KeepOutageLog {
  readonly #trouble: Trouble;
  readonly #notKept: Series;
  #smallestBytes = Infinity;

  constructor(log: Logger, metrics: Pick<Metrics, "series">) {
    this.#notKept = metrics.series("nar_not_kept_total", { reason: "disk_error" });
    this.#trouble = new Trouble(log, {
      level: "error",
      begun: "nars cannot be kept: they are passed on",
      over: "nars are kept again",
    });
  }

  /** `fileSize`: of the file, or as much as there was of it. */
  failed(fileSize: number, facts: Facts): void {
    this.#notKept.count();
    this.#smallestBytes = Math.min(this.#smallestBytes, fileSize);
    this.#trouble.met(facts);
  }

  kept(fileSize: number): void {
    // On a disk that is full there is room for small ones still.
    if (fileSize < this.#smallestBytes) return;
    this.#smallestBytes = Infinity;
    this.#trouble.over();
  }
}
