/**
 * The figures of `/stats`, field by field in docs/stats.md. Names are kept once released. Bytes
 * and seconds are numbers, times ISO 8601 in UTC; `null` is what is not known, or not there.
 */
export interface Stats {
  readonly version: string;
  /** When these figures were taken. */
  readonly at: string;
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  readonly publicKey: string | null;
  readonly requests: {
    readonly narinfo: RequestStats;
    readonly nar: RequestStats;
  };
  readonly traffic: TrafficStats;
  readonly size: SizeStats;
  readonly upstreams: readonly UpstreamStats[];
  readonly downloads: {
    readonly count: number;
    readonly underWay: readonly DownloadStats[];
  };
  readonly pins: PinStats | null;
  readonly problems: readonly ProblemStats[];
}

/** Since the start, as `larder_cache_requests_total` counts them. */
export interface RequestStats {
  readonly hits: number;
  readonly misses: number;
  readonly joined: number;
  /** Answered from memory that no upstream has it. */
  readonly absent: number;
  /** Hits and joined among those and the misses; `null` before the first of them. */
  readonly hitRatio: number | null;
}

/** Since the start. */
export interface TrafficStats {
  readonly servedBytes: number;
  readonly upstreamBytes: number;
  /** Those of the served bytes that no upstream had to send for that answer. */
  readonly savedBytes: number;
}

export interface SizeStats {
  readonly usedBytes: number;
  readonly reservedBytes: number;
  readonly pinnedBytes: number;
  readonly limitBytes: number | null;
  readonly evictedBytes: number;
  readonly evictedEntries: number;
}

export interface UpstreamStats {
  readonly url: string;
  readonly isUp: boolean;
  readonly priority: number | null;
  readonly lastAnswer: { readonly result: string; readonly at: string } | null;
}

export interface DownloadStats {
  readonly nar: string;
  readonly name: string | null;
  readonly state: "opening" | "receiving" | "verifying";
  readonly receivedBytes: number;
  readonly fileBytes: number | null;
  readonly startedAt: string;
}

export interface PinStats {
  readonly count: number;
  readonly countedAt: string | null;
  readonly roots: readonly PinnedRootStats[];
}

export interface PinnedRootStats {
  readonly root: string;
  readonly name: string | null;
  readonly pinnedAt: string;
  readonly stored: number | null;
  readonly missing: number | null;
  readonly bytes: number | null;
}

export interface ProblemStats {
  readonly level: "warn" | "error";
  readonly message: string;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}
