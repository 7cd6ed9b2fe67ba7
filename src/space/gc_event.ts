/** What a run asked for by an operator has done so far. Sizes are in bytes. */
export interface GcProgress {
  readonly event: "progress";
  readonly freedBytes: number;
  readonly evictedEntries: number;
  readonly usedBytes: number;
}

/** How such a run ended; of a dry run, how it would have. Sizes are in bytes. */
export interface GcDone {
  readonly event: "done";
  readonly dryRun: boolean;
  /** What the used bytes were to come down to. */
  readonly targetBytes: number;
  /** `null` without a size limit. */
  readonly limitBytes: number | null;
  readonly freedBytes: number;
  readonly evictedEntries: number;
  /** NAR files; fewer than entries where several shared one. */
  readonly evictedFiles: number;
  readonly usedBytes: number;
  readonly reservedBytes: number;
  /** Left because a pin protects them. */
  readonly pinnedBytes: number;
  /** Left because they are read or written right now. */
  readonly busyBytes: number;
  readonly reached: boolean;
}

/** Any number of "progress", then one "done". */
export type GcEvent = GcProgress | GcDone;

/** What an operator may ask of a run. */
export interface GcOrder {
  /** Absent: where a run of its own accord would stop. */
  readonly targetBytes?: number;
  /** Changes nothing, and says what it would. */
  readonly dryRun: boolean;
}
