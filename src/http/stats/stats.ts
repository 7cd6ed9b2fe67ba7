import type { ShownLook } from "../../pins/pinned_closures.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { Figure, Tier } from "../../metadata/history_keeper.ts";
import type { LimitSource } from "../../space/size_limit.ts";
import type { MemberStatus } from "./member_status.ts";

/** Goes up when a name goes or changes its meaning. */
export const STATS_VERSION = 2;

/**
 * The fields of `/stats`, documented in docs/stats.md. Bytes and seconds are numbers, times are
 * ISO 8601 in UTC; `null` is unknown or absent.
 */
export interface Stats {
  readonly stats_version: typeof STATS_VERSION;
  readonly version: string;
  /** Time of these figures. */
  readonly at: string;
  readonly started_at: string;
  readonly uptime_seconds: number;
  readonly public_key: string | null;
  /** The address of the client that asks. */
  readonly client: string | null;
  readonly verdict: VerdictStats;
  readonly requests: {
    readonly narinfo: RequestStats;
    readonly nar: RequestStats;
  };
  readonly traffic: TrafficStats;
  readonly lifetime: LifetimeStats;
  readonly history: HistoryStats;
  readonly prefetch: {
    /** False with `--cache-prefetch=false`. */
    readonly is_on: boolean;
    readonly narinfo: PrefetchStats;
    readonly nar: PrefetchStats;
  };
  readonly size: SizeStats;
  readonly upstreams: readonly UpstreamStats[];
  readonly downloads: TransfersStats;
  readonly verification_backlog: BacklogStats;
  readonly uploads: TransfersStats;
  readonly sends: SendsStats;
  readonly pins: PinStats | null;
  readonly problems: readonly ProblemStats[];
  /** This one first; empty for a larder that is alone on SQLite. */
  readonly members: readonly MemberStats[];
}

/** The judgement that the status page and `larder status` print. */
export interface VerdictStats {
  readonly is_well: boolean;
  /** Text for people, in a few words. */
  readonly text: string;
  /** The errors first; empty if all is well. */
  readonly faults: readonly FaultStats[];
}

/** A fault and its remedy. */
export interface FaultStats {
  readonly level: "warn" | "error";
  readonly text: string;
  readonly hint: string | null;
}

/** A larder process of this storage, as in its last report. */
export interface MemberStats extends Omit<MemberStatus, "is_draining"> {
  readonly id: MemberId;
  readonly is_self: boolean;
  /** "left": it was draining, and reports no more. */
  readonly state: "running" | "draining" | "gone" | "left";
  readonly reported_at: string;
}

/** Since the start, as in `larder_cache_requests_total`. */
export interface RequestStats {
  readonly hits: number;
  readonly misses: number;
  readonly joined: number;
  /** Requests for a file that larder prefetched, up to its first GET. */
  readonly prefetched: number;
  /** Absences answered from memory. */
  readonly absent: number;
  /** Requests of larder's own commands, such as `larder warm`; in none of the above. */
  readonly commands: number;
  /** Share of hits and joined requests in all but absent ones; `null` before the first. */
  readonly hit_ratio: number | null;
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
  readonly served_bytes: number;
  readonly upstream_bytes: number;
  /** Served bytes without a transfer from an upstream for that answer. */
  readonly saved_bytes: number;
}

/** Figures of all members since the first start of this storage. */
export interface LifetimeStats {
  readonly since: string;
  readonly requests: number;
  readonly served_bytes: number;
  readonly upstream_bytes: number;
  readonly saved_bytes: number;
  readonly narinfo: LifetimeRequestStats;
  readonly nar: LifetimeRequestStats;
}

/** Requests of clients that larder or an upstream answered, and the share of hits. */
export interface LifetimeRequestStats {
  readonly requests: number;
  readonly hit_ratio: number | null;
}

/** The past of all members, in slots of equal length. */
export interface HistoryStats {
  readonly range: Exclude<Tier, "lifetime">;
  readonly step_seconds: number;
  /** The oldest first. */
  readonly slots: readonly HistorySlotStats[];
}

export interface HistorySlotStats {
  readonly at: string;
  /** `null`: no larder has run. */
  readonly figures: Readonly<Record<Exclude<Figure, "since_ms">, number>> | null;
}

export interface SizeStats {
  readonly used_bytes: number;
  readonly reserved_bytes: number;
  readonly pinned_bytes: number;
  readonly database_bytes: number;
  readonly limit_bytes: number | null;
  readonly limit_source: LimitSource;
  /** Bytes of the disk that stay free; `null` where the limit has another source. */
  readonly disk_reserve_bytes: number | null;
  /** Free bytes of the storage's file system. */
  readonly disk_free_bytes: number | null;
  readonly evicted_bytes: number;
  readonly evicted_entries: number;
  /** Kept in zstd in place of another compression. */
  readonly recompressed_bytes: number;
}

interface LastAnswerStats {
  readonly result: string;
  readonly at: string;
}

export interface UpstreamStats {
  readonly url: string;
  /** Up for narinfos. */
  readonly is_up: boolean;
  /** False if its last NAR request got no answer. */
  readonly sends_nars: boolean;
  readonly priority: number | null;
  /** Last answer to a narinfo request. */
  readonly last_answer: LastAnswerStats | null;
  readonly last_nar_answer: LastAnswerStats | null;
  readonly last_error: {
    readonly request: "narinfo" | "nar" | "probe";
    readonly reason: string;
    /** The status of the response, if it is an error. */
    readonly status: number | null;
    readonly at: string;
    readonly hint: string;
  } | null;
  /** Narinfo requests since the start, by their outcome. */
  readonly answers: {
    readonly found: number;
    readonly absent: number;
    readonly failed: number;
  };
  /** Latencies of the newest requests, the oldest first. */
  readonly latencies_ms: readonly number[];
  /** The waits of clients for it because of its priority, while another upstream had the path. */
  readonly waits: WaitStats;
  /** Answers that took over a second, while a client waited. */
  readonly slow_answers: { readonly count: number; readonly longest_ms: number };
  /** The path that last waited for it, or waits; `null`: none has. */
  readonly last_wait: {
    readonly path: string;
    readonly ms: number;
    readonly at: string;
    /** The rate of its NAR file, where it waited for those bytes. */
    readonly bytes_per_second: number | null;
  } | null;
  /** The mean of its newest NAR transfers; `null` before the first of some size. */
  readonly nar_bytes_per_second: number | null;
}

export interface WaitStats {
  readonly count: number;
  /** Those in vain. */
  readonly late: number;
  readonly total_ms: number;
  readonly longest_ms: number;
}

export interface TransfersStats {
  readonly count: number;
  readonly under_way: readonly TransferStats[];
}

/** A NAR file in flight: a download, a pass-through or an upload. */
export interface TransferStats {
  readonly nar: string;
  readonly name: string | null;
  readonly state: "opening" | "receiving" | "verifying";
  readonly received_bytes: number;
  readonly file_bytes: number | null;
  readonly started_at: string;
  /** The mean of the last seconds; 0 while nothing arrives. */
  readonly bytes_per_second: number | null;
  readonly seconds_left: number | null;
  /** Different addresses. */
  readonly client_count: number;
  /** The first of them; empty for those who may not pin. */
  readonly clients: readonly string[];
}

/** Whole NAR files that wait for their check, as in `larder_verification_backlog_*`. */
export interface BacklogStats {
  readonly files: number;
  readonly bytes: number;
  /** How long the oldest one waits. */
  readonly seconds: number;
}

/** Stored NAR files that clients receive. */
export interface SendsStats {
  readonly count: number;
  readonly under_way: readonly SendStats[];
}

export interface SendStats {
  readonly nar: string;
  readonly name: string | null;
  readonly client_count: number;
  readonly clients: readonly string[];
}

export interface PinStats {
  readonly count: number;
  readonly counted_at: string | null;
  readonly roots: readonly PinnedRootStats[];
}

export interface PinnedRootStats {
  readonly root: string;
  readonly name: string | null;
  readonly pinned_at: string;
  readonly stored: number | null;
  readonly missing: number | null;
  readonly bytes: number | null;
  /** The part of the bytes that no other pin reaches. */
  readonly own_bytes: number | null;
  /** The names that hold it. */
  readonly under: readonly string[];
  /** True: names alone hold it. */
  readonly rolls: boolean;
  /** True: larder fetches what is missing. */
  readonly keep_complete: boolean;
  /** Whether the last look found every path here; `null`: nobody has looked yet. */
  readonly complete: boolean | null;
  readonly look: ShownLook | null;
}

/** A kind of warning or error of one subject. */
export interface ProblemStats {
  /** What failed: the outages of one part are one problem. */
  readonly part: string;
  /** The kind of the event, which stays where its words change. */
  readonly event: string;
  readonly level: "warn" | "error";
  readonly message: string;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
  readonly count: number;
  readonly first_at: string;
  /** Begin of the present outage, or of the last one; of an event, its first time. */
  readonly begun_at: string;
  readonly last_at: string;
  /** `null`: it lasts, or it is an event, which has no end. */
  readonly over_at: string | null;
}
