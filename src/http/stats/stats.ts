/**
 * The fields of `/stats`, documented in docs/stats.md. A released name never changes. Bytes and
 * seconds are numbers, times are ISO 8601 in UTC; `null` is unknown or absent.
 */
export interface Stats {
  readonly version: string;
  /** Time of these figures. */
  readonly at: string;
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  readonly publicKey: string | null;
  /** The address of the client that asks. */
  readonly client: string | null;
  readonly requests: {
    readonly narinfo: RequestStats;
    readonly nar: RequestStats;
  };
  readonly traffic: TrafficStats;
  readonly prefetch: {
    readonly narinfo: PrefetchStats;
    readonly nar: PrefetchStats;
  };
  readonly size: SizeStats;
  readonly upstreams: readonly UpstreamStats[];
  readonly downloads: {
    readonly count: number;
    readonly underWay: readonly TransferStats[];
  };
  readonly uploads: {
    readonly count: number;
    readonly underWay: readonly TransferStats[];
  };
  readonly pins: PinStats | null;
  readonly problems: readonly ProblemStats[];
}

/** Since the start, as in `larder_cache_requests_total`. */
export interface RequestStats {
  readonly hits: number;
  readonly misses: number;
  readonly joined: number;
  /** First requests for what larder fetched ahead. */
  readonly prefetched: number;
  /** Absences answered from memory. */
  readonly absent: number;
  /** Share of hits and joined requests in all but absent ones; `null` before the first. */
  readonly hitRatio: number | null;
}

/** Since the start, as `larder_prefetch_total` counts it. */
export interface PrefetchStats {
  readonly used: number;
  readonly wasted: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Since the start. */
export interface TrafficStats {
  readonly servedBytes: number;
  readonly upstreamBytes: number;
  /** Served bytes without a transfer from an upstream for that answer. */
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

/** A NAR file in flight: a download, a pass-through or an upload. */
export interface TransferStats {
  readonly nar: string;
  readonly name: string | null;
  readonly state: "opening" | "receiving" | "verifying";
  readonly receivedBytes: number;
  readonly fileBytes: number | null;
  readonly startedAt: string;
  /** Different addresses. */
  readonly clientCount: number;
  /** The first of them. */
  readonly clients: readonly string[];
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
