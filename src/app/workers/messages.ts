import type { Bytes } from "../../base/bytes.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { ClosurePath, PinnedClosure } from "../../pins/pinned_closures.ts";
import type { FetchEvent, FetchOrder } from "../../cache/fetch/nar_fetcher.ts";
import type { NcpsContents, NcpsEntryRows } from "../../cache/import/ncps/ncps_tables.ts";
import type { Encoded, EncodeOrder } from "../../cache/recompress/nar_encoder.ts";
import type { ShardComparison } from "../../cache/reconcile/compare_shard.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import type { StorageHealth } from "../../metadata/storage_health.ts";
import type {
  BodyOrder,
  DecodedBody,
  NarCount,
  NarMeasure,
  PassThroughOrder,
  VerifyOrder,
} from "../../cache/verify/nar_verifier.ts";
import type { Pause } from "../../cache/verify/pace.ts";
import type { CaCertificates, HttpUpstreamSettings } from "../../upstream/http/upstream_fetch.ts";
import type { NarinfoOrder } from "../../upstream/http/narinfo_fetcher.ts";
import type { NarinfoReading } from "../../upstream/upstream.ts";
import type { StorePlaces } from "../back_ends/back_ends.ts";

// Messages between the main thread and its Workers. `id` identifies the job.

export type ToFetchWorker =
  | {
    readonly type: "start";
    readonly upstreams: readonly HttpUpstreamSettings[];
    readonly caCertificates: CaCertificates;
  }
  | { readonly type: "begin"; readonly id: number; readonly order: FetchOrder }
  | {
    readonly type: "fetch";
    readonly id: number;
    /** Identifies this attempt within the job. */
    readonly attempt: number;
    readonly source: NarSource;
    /** Headers of the request to the upstream. */
    readonly headers: Readonly<Record<string, string>>;
    /** True: no retries. */
    readonly isFinal: boolean;
  }
  /** Total of bytes that may be written, in answer to "wanted". */
  | { readonly type: "room"; readonly id: number; readonly bytes: number }
  | { readonly type: "close"; readonly id: number };

export interface FromFetchWorker {
  readonly id: number;
  /** Missing if the event concerns the file, not one attempt. */
  readonly attempt?: number;
  readonly event:
    | FetchEvent
    | { readonly type: "room"; readonly bytes: number }
    /** The attempt's source answered first. */
    | { readonly type: "taken" };
}

export type ToNarinfoWorker =
  | {
    readonly type: "start";
    readonly upstreams: readonly HttpUpstreamSettings[];
    readonly caCertificates: CaCertificates;
    /** Trusted keys in Nix's text form. */
    readonly trustedKeys: readonly string[];
    readonly requireSignature: boolean;
    /** Secret key in Nix's file format; `undefined`: the Worker signs nothing. */
    readonly secretKey: string | undefined;
  }
  | { readonly type: "orders"; readonly orders: readonly NarinfoWorkerOrder[] };

export type NarinfoWorkerOrder =
  /** Its answer shows that the Worker is up, and does not hang. */
  | { readonly type: "ping"; readonly id: number }
  | {
    readonly type: "fetch";
    readonly id: number;
    readonly upstream: string;
    readonly order: NarinfoOrder;
  }
  | { readonly type: "cancel"; readonly id: number };

/** A message of the Worker. Messages come in lists. */
export type FromNarinfoWorker =
  | { readonly id: number; readonly type: "pong" }
  | { readonly id: number; readonly type: "busy" }
  /** The status of the final response, whose body is late. */
  | { readonly id: number; readonly type: "answered"; readonly status: number }
  | {
    readonly id: number;
    readonly type: "read";
    readonly reading: NarinfoReading;
    readonly status: number | undefined;
  }
  /** A bug. */
  | { readonly id: number; readonly type: "broken"; readonly error: string }
  | { readonly id: number; readonly type: "died"; readonly detail: string };

export type ToCompareWorker =
  | { readonly type: "start"; readonly places: StorePlaces }
  | {
    readonly type: "compare";
    readonly id: number;
    readonly shard: string;
    /** True to compare the size of each file too. */
    readonly sizes: boolean;
  };

export type FromCompareWorker =
  | { readonly id: number; readonly comparison: ShardComparison }
  | { readonly id: number; readonly error: string };

export type ToVerifyWorker =
  | {
    readonly type: "verify";
    readonly id: number;
    readonly order: VerifyOrder;
    /** The readable part, as in "grown". */
    readonly fileSize: number;
    readonly whole: boolean;
  }
  | {
    readonly type: "grown";
    readonly id: number;
    readonly fileSize: number;
    readonly whole: boolean;
  }
  | {
    readonly type: "decode";
    readonly id: number;
    readonly order: BodyOrder;
    readonly bytes: Bytes;
  }
  /** The next slice, in answer to "pause", or the next piece of a NAR: in the memory of the last. */
  | { readonly type: "goOn"; readonly id: number; readonly spare?: ArrayBuffer }
  | {
    readonly type: "passThrough";
    readonly id: number;
    readonly order: PassThroughOrder;
    /** True: the NAR is sent back in pieces, each after a "goOn" to the one before. */
    readonly givesNar: boolean;
  }
  | { readonly type: "piece"; readonly id: number; readonly bytes: Bytes }
  | { readonly type: "end"; readonly id: number }
  | { readonly type: "cancel"; readonly id: number };

export type FromVerifyWorker =
  | { readonly id: number; readonly measure: NarMeasure }
  /** The result of a pass-through. */
  | { readonly id: number; readonly passed: NarMeasure | NarCount }
  | { readonly id: number; readonly body: DecodedBody }
  /** A slice is over. */
  | { readonly id: number; readonly pause: Pause }
  | { readonly id: number; readonly narPiece: Bytes }
  /** A piece is decoded, or no longer needed. */
  | { readonly id: number; readonly taken: true }
  /** `isRefused`: there was no memory for a decoder. */
  | { readonly id: number; readonly error: string; readonly isRefused?: true };

export type ToEncodeWorker =
  | { readonly type: "encode"; readonly id: number; readonly order: EncodeOrder }
  | { readonly type: "piece"; readonly id: number; readonly bytes: Bytes }
  /** The next part of the NAR may be encoded. */
  | { readonly type: "go"; readonly id: number }
  | { readonly type: "end"; readonly id: number }
  | { readonly type: "cancel"; readonly id: number };

export type FromEncodeWorker =
  | { readonly id: number; readonly encoded: Encoded }
  /** It waits for "go". */
  | { readonly id: number; readonly waits: true }
  /** A piece is encoded, or no longer needed. */
  | { readonly id: number; readonly taken: true }
  | { readonly id: number; readonly error: string };

/** A job on a database file: the Worker counts its pinned closures, or reads its health. */
export interface DatabaseJob {
  readonly id: number;
  readonly databasePath: string;
}

/** `root`: lists the paths of its closure, in place of counting all pins' closures. */
export interface ClosuresJob extends DatabaseJob {
  readonly root?: StorePathHash;
}

export type FromClosuresWorker =
  | { readonly id: number; readonly closures: readonly PinnedClosure[] }
  | { readonly id: number; readonly paths: readonly ClosurePath[] }
  /** `isOverloaded`: they are too many to count. */
  | { readonly id: number; readonly error: string; readonly isOverloaded: boolean };

/** The first one opens the database of an ncps, the last one closes it. */
export type ToNcpsWorker =
  | {
    readonly type: "open";
    readonly id: number;
    readonly path: string;
    /** Takes a copy, where SQLite cannot read the file in its place. */
    readonly copyFolder: string;
  }
  | { readonly type: "entry"; readonly id: number; readonly narinfoId: bigint }
  | { readonly type: "close"; readonly id: number };

export type FromNcpsWorker =
  | { readonly id: number; readonly answer: NcpsContents | NcpsEntryRows | undefined | void }
  | { readonly id: number; readonly error: string };

export type FromHealthWorker =
  | { readonly id: number; readonly health: StorageHealth }
  | { readonly id: number; readonly error: string };
