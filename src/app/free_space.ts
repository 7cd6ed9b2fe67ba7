import { messageOf } from "../base/failure.ts";
import { clock, files } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";

const SAMPLE_EVERY_MS = 5_000;

export interface FreeSpaceDeps {
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
export function sampleFreeSpace({ path, metrics, disk, log }: FreeSpaceDeps): Disposable {
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
