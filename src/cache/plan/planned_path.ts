import type { StorePathHash } from "../../nix/store_path.ts";

/** Where a pull finds a store path. One line of `/plan`. */
export interface PlannedPath {
  readonly hash: StorePathHash;
  /** Name behind the hash in the store path; `null` if that is unknown. */
  readonly name: string | null;
  /**
   * "here": its NAR file is stored. "upstream": an upstream offers it. "nowhere": every upstream
   * that answered lacks it. "unknown": an upstream failed, no trusted key signs its narinfo, or the
   * storage that has its NAR file does not answer.
   */
  readonly state: "here" | "upstream" | "nowhere" | "unknown";
  /** Paths with the same NAR file share it; `null` if there is none. */
  readonly nar: string | null;
  /** Bytes of the NAR file; where no upstream says so, those of the NAR. */
  readonly bytes: number | null;
  /** The upstreams that offer it, the preferred one first. */
  readonly upstreams: readonly string[];
}

/** An upstream, as a plan uses it. */
export interface PlannedUpstream {
  readonly url: string;
  readonly is_up: boolean;
  /** The rate of one transfer of NAR files, of the newest ones; `null` before the first. */
  readonly bytes_per_second: number | null;
  /** The median time to the first byte of its newest narinfos; `null` before the first. */
  readonly latency_ms: number | null;
}
