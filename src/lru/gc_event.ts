/** How far an eviction run is. */
export interface GcProgress {
  readonly event: "progress";
  readonly freedBytes: number;
  readonly evictedEntries: number;
  readonly usedBytes: number;
}

/** What an eviction run came to. After a dry run the figures tell what would have happened. */
export interface GcDone {
  readonly event: "done";
  readonly dryRun: boolean;
  readonly targetBytes: number;
  /** `null` where there is no limit. */
  readonly limitBytes: number | null;
  readonly freedBytes: number;
  readonly evictedEntries: number;
  readonly evictedFiles: number;
  readonly usedBytes: number;
  readonly reservedBytes: number;
  /** Held by pins. */
  readonly pinnedBytes: number;
  /** Held by readers and downloads. */
  readonly busyBytes: number;
  /** False when pins, readers and downloads hold more than the target. */
  readonly reached: boolean;
}

export type GcEvent = GcProgress | GcDone;
