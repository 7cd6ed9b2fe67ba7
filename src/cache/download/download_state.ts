/** Where a download is. `received` counts the file's bytes that are on disk. */
export type DownloadState =
  | { readonly state: "opening" }
  | { readonly state: "receiving"; readonly received: number; readonly fileSize?: number }
  /** All bytes are here. `released` once they are known to be what the upstream announced. */
  | { readonly state: "received"; readonly fileSize: number; readonly released: boolean }
  | { readonly state: "kept"; readonly fileSize: number }
  /** `mayPassThrough` where this machine cannot store the file: upstreams may still have it. */
  | { readonly state: "failed"; readonly reason: string; readonly mayPassThrough?: boolean };

export type DownloadEvent =
  | { readonly type: "opened"; readonly fileSize?: number }
  | { readonly type: "bytes"; readonly received: number }
  /** What came is wrong, and nobody has had any of it. */
  | { readonly type: "startedOver" }
  /** `released` says whether the file hash's verdict is in. */
  | { readonly type: "end"; readonly fileSize: number; readonly released: boolean }
  /** The NAR hash's verdict is in, and right. */
  | { readonly type: "verified" }
  | { readonly type: "kept" }
  | { readonly type: "error"; readonly reason: string; readonly mayPassThrough?: boolean };

/** The only place where a download changes state. */
export function next(now: DownloadState, event: DownloadEvent): DownloadState {
  if (now.state === "kept" || now.state === "failed") return now;
  switch (event.type) {
    case "error":
      return {
        state: "failed",
        reason: event.reason,
        ...(event.mayPassThrough === undefined ? {} : { mayPassThrough: event.mayPassThrough }),
      };
    case "opened":
      return now.state === "opening"
        ? { state: "receiving", received: 0, ...sizeOf(event.fileSize) }
        : outOfTurn(event, now);
    case "startedOver":
      return { state: "opening" };
    case "bytes":
      return now.state === "receiving" && event.received >= now.received
        ? { ...now, received: event.received }
        : outOfTurn(event, now);
    case "end": {
      if (now.state !== "receiving") return outOfTurn(event, now);
      const { fileSize: expected = event.fileSize } = now;
      if (expected !== event.fileSize || now.received > event.fileSize) {
        return { state: "failed", reason: `got ${event.fileSize} of ${expected} bytes` };
      }
      return { state: "received", fileSize: event.fileSize, released: event.released };
    }
    case "verified":
      return now.state === "received" ? { ...now, released: true } : outOfTurn(event, now);
    case "kept":
      return now.state === "received" && now.released
        ? { state: "kept", fileSize: now.fileSize }
        : outOfTurn(event, now);
  }
}

/** True when every byte may be had: they are known to be what the upstream announced. */
export function isReleased(now: DownloadState): boolean {
  return now.state === "kept" || (now.state === "received" && now.released);
}

/**
 * How many of the file's leading bytes a client may have that wants them up to `end` (default: the
 * file's end). The last one waits for the verdict: nobody gets a complete file, or a complete part
 * of one, that differs from what was announced.
 */
export function readableUpTo(now: DownloadState, end = Infinity): number {
  switch (now.state) {
    case "opening":
    case "failed":
      return 0;
    case "receiving":
      return Math.max(0, Math.min(now.received, end) - 1);
    case "received":
      return now.released ? now.fileSize : Math.max(0, Math.min(now.fileSize, end) - 1);
    case "kept":
      return now.fileSize;
  }
}

/** The whole file's size, once it is known. */
export function knownFileSize(now: DownloadState): number | undefined {
  return now.state === "opening" || now.state === "failed" ? undefined : now.fileSize;
}

function sizeOf(fileSize: number | undefined): { fileSize?: number } {
  return fileSize === undefined ? {} : { fileSize };
}

function outOfTurn(event: DownloadEvent, now: DownloadState): DownloadState {
  return { state: "failed", reason: `${event.type} while ${now.state}` };
}
