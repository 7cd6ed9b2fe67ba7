/** Resolves after `ms`, or as soon as `signal` fires. The caller checks the signal. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
    function end(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    }
  });
}

/** The longest pause behind a batch: a longer batch has waited for the disk. */
const BATCH_PAUSE_MAX_MS = 10;

/** Pauses as long as a batch took: requests come first, so long work leaves them half the time. */
export function pauseBehindBatch(tookMs: number, signal?: AbortSignal): Promise<void> {
  return pause(Math.min(BATCH_PAUSE_MAX_MS, Math.max(1, tookMs)), signal);
}
