import type { TransferProgress } from "../fetch/nar_fetcher.ts";
import type { SignatureCheck } from "../../nix/trusted_keys.ts";
import type { LimitSource } from "../../space/size_limit.ts";

/** Why a request for a store path is a hit or a miss, as `/explain` answers. */
export interface Explanation {
  readonly hash: string;
  /** Name behind the hash in the store path: as stored, from an upstream, or as requested. */
  readonly name: string | null;
  readonly verdict:
    | "hit"
    | "downloading"
    | "nar_not_stored"
    /** The NAR file is stored, and the storage does not answer now. */
    | "storage_away"
    | "absent"
    | "not_stored";
  /** Sentences for people. */
  readonly reasons: readonly string[];
  readonly narinfo: {
    /** A trusted key signed it. */
    readonly trusted: boolean;
    /** Names of the keys that larder has verified signatures of, except its own. */
    readonly keys: readonly string[];
    /** All its signatures, except larder's own. */
    readonly signatures: readonly ExplainedSignature[];
    /** The upstreams that have its NAR. */
    readonly upstreams: readonly string[];
  } | null;
  readonly nar: {
    readonly name: string;
    readonly is_stored: boolean;
    /** True if its stored file is missing or damaged. Then it counts as evicted. */
    readonly is_lost: boolean;
    readonly file_bytes: number | null;
    readonly nar_bytes: number;
    /** `null` if it is not stored, or an older larder stored it. */
    readonly stored_at: string | null;
    /** When it was fetched or uploaded: before `stored_at`, where larder has recompressed it since. */
    readonly came_at: string | null;
    /** Compression of the stored file, where larder has recompressed it at `stored_at`. */
    readonly recompressed: "zstd" | null;
    /**
     * Time when an upstream's narinfo last named it; the beginning of 1970 if none was seen with it
     * since its file was given up; `null` if none ever did.
     */
    readonly seen_at: string | null;
    /** The upstreams that sent the stored file; `null` if that is unknown. */
    readonly from: readonly string[] | null;
    /** Its download in flight, which further requests join; `null`: there is none. */
    readonly download: {
      readonly state: TransferProgress["state"];
      /** The upstreams that send it, or are asked for it. */
      readonly from: readonly string[];
      readonly received_bytes: number;
      /** `null` while it is unknown. The next one is `null` in the first second, too. */
      readonly file_bytes: number | null;
      readonly bytes_per_second: number | null;
    } | null;
    /** How fast its last transfer of some size came, or comes; `null` if that is unknown. */
    readonly pace: {
      readonly upstream: string;
      readonly bytes_per_second: number;
      readonly ms: number;
      /** True where it made a client wait. */
      readonly is_slow: boolean;
      readonly at: string;
    } | null;
  } | null;
  /** Why the last NAR transfer since the start of larder stored nothing; `null` if none failed. */
  readonly unstored: ExplainedUnstored | null;
  /** The last answer of each upstream since the start of larder. */
  readonly answers: readonly ExplainedAnswer[];
  /** Time of the last use; some seconds late. */
  readonly used_at: string | null;
  /** Who that was: a client, or a command such as `larder warm`; `null` if that is unknown. */
  readonly used_by: "client" | "command" | null;
  /** Time of the eviction, if it is among the newest 10,000. */
  readonly evicted_at: string | null;
  /** The pinned roots that reach it, at most 100; `null` if that is unknown. */
  readonly pins: readonly PinReaching[] | null;
  /** The number of all of them; `null` if that is unknown. */
  readonly pin_count: number | null;
  /** False without a size limit: then larder evicts nothing by itself. */
  readonly has_limit: boolean;
  /** Place in the order of eviction, from 1; `null` if it is not among the next 1,000. */
  readonly eviction_rank: number | null;
}

export interface ExplainedSignature {
  /** The name of its key, as the signature has it. */
  readonly key: string;
  /** "wrong": larder knows a key of that name, which did not make the signature. */
  readonly check: SignatureCheck;
}

export interface ExplainedUnstored {
  readonly reason: "not_sent" | "no_room" | "disk" | "storage" | "database";
  readonly at: string;
  /** Bytes of a NAR without room. The limit and the pinned bytes follow. */
  readonly bytes: number | null;
  readonly limit_bytes: number | null;
  readonly limit_source: LimitSource | null;
  readonly pinned_bytes: number | null;
  /** The last failure of each upstream that had the request. */
  readonly answers: readonly ExplainedAnswer[];
}

export interface ExplainedAnswer {
  readonly upstream: string;
  readonly result: string;
  /** HTTP status of a response that is an error. */
  readonly status: number | null;
  /** The name of a given key that did not make the signature of that name. */
  readonly wrong_key: string | null;
  /** A client waited so long for it, because of its priority; `null`: for none, or not at all. */
  readonly waited_ms: number | null;
  /** How long it took to answer, if that is over a second. */
  readonly took_ms: number | null;
  readonly at: string;
}

export interface PinReaching {
  readonly root: string;
  readonly name: string | null;
}
