/** The state of a download. `received`: bytes of the file on disk. */
export type DownloadState =
  /** `isOurs`: no other member downloads it. */
  | { readonly state: "opening"; readonly isOurs?: true }
  | { readonly state: "receiving"; readonly received: number; readonly fileSize?: number }
  /**
   * All bytes are on disk. `released`: they have the announced file hash; `verified`: and the NAR
   * hash too.
   */
  | {
    readonly state: "received";
    readonly fileSize: number;
    readonly released: boolean;
    readonly verified?: boolean;
  }
  | { readonly state: "kept"; readonly fileSize: number }
  /**
   * `mayPassThrough`: only this machine failed, so upstreams may still have the file. `fileSize`:
   * the file is verified and only its storing failed, so its readers go on.
   */
  | {
    readonly state: "failed";
    readonly reason: string;
    readonly mayPassThrough?: boolean;
    readonly fileSize?: number;
  };

export type DownloadEvent =
  /** This member's lease to download the file. */
  | { readonly type: "lease" }
  | { readonly type: "opened"; readonly fileSize?: number }
  | { readonly type: "bytes"; readonly received: number }
  /** The bytes are wrong, and no reader has received any of them. */
  | { readonly type: "startedOver" }
  /** `released`: the file hash is verified. */
  | { readonly type: "end"; readonly fileSize: number; readonly released: boolean }
  /** The NAR hash is verified. */
  | { readonly type: "verified" }
  | { readonly type: "kept" }
  | { readonly type: "error"; readonly reason: string; readonly mayPassThrough?: boolean };

/** The only place where a download changes state. */
export function nextState(now: DownloadState, event: DownloadEvent): DownloadState {
  if (now.state === "kept" || now.state === "failed") return now;
  switch (event.type) {
    case "error":
      return {
        state: "failed",
        reason: event.reason,
        ...(event.mayPassThrough === undefined ? {} : { mayPassThrough: event.mayPassThrough }),
        ...(now.state === "received" && now.verified ? { fileSize: now.fileSize } : {}),
      };
    case "lease":
      return now.state === "opening" ? { state: "opening", isOurs: true } : now;
    case "opened":
      return now.state === "opening"
        ? { state: "receiving", received: 0, ...sizeOf(event.fileSize) }
        : outOfOrder(event, now);
    case "startedOver":
      return { state: "opening" };
    case "bytes":
      return now.state === "receiving" && event.received >= now.received
        ? { ...now, received: event.received }
        : outOfOrder(event, now);
    case "end": {
      if (now.state !== "receiving") return outOfOrder(event, now);
      const { fileSize: expected = event.fileSize } = now;
      if (expected !== event.fileSize || now.received > event.fileSize) {
        return { state: "failed", reason: `got ${event.fileSize} of ${expected} bytes` };
      }
      return { state: "received", fileSize: event.fileSize, released: event.released };
    }
    case "verified":
      return now.state === "received"
        ? { ...now, released: true, verified: true }
        : outOfOrder(event, now);
    case "kept":
      return now.state === "received" && now.released
        ? { state: "kept", fileSize: now.fileSize }
        : outOfOrder(event, now);
  }
}

/** True when every byte may be read: they are known to be the announced ones. */
export function isReleased(now: DownloadState): boolean {
  if (now.state === "failed") return now.fileSize !== undefined;
  return now.state === "kept" || (now.state === "received" && now.released);
}

/**
 * The count of leading bytes that a client may have that wants the file up to `end` (default: its
 * end). The last one waits for the check result: no client completes a file or part that is wrong.
 */
export function readableUpTo(now: DownloadState, end = Infinity): number {
  switch (now.state) {
    case "opening":
      return 0;
    case "failed":
      return now.fileSize ?? 0;
    case "receiving":
      return Math.max(0, Math.min(now.received, end) - 1);
    case "received":
      return now.released ? now.fileSize : Math.max(0, Math.min(now.fileSize, end) - 1);
    case "kept":
      return now.fileSize;
  }
}

/** The size of the whole file; `undefined` until it is known. */
export function knownFileSize(now: DownloadState): number | undefined {
  return now.state === "opening" ? undefined : now.fileSize;
}

function sizeOf(fileSize: number | undefined): { fileSize?: number } {
  return fileSize === undefined ? {} : { fileSize };
}

function outOfOrder(event: DownloadEvent, now: DownloadState): DownloadState {
  return { state: "failed", reason: `${event.type} while ${now.state}` };
}
