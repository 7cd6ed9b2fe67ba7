import type { NarEncoder } from "../cache/recompress/nar_encoder.ts";
import type { ClosureLister } from "../pins/pinned_closures.ts";
import type { HandOver } from "../http/routes/nar.ts";
import type { OwnNames } from "../http/access/own_names.ts";
import type { Token } from "../http/access/tokens.ts";
import type { WorkLeases } from "../locks/work_leases.ts";
import type { MemberBoard } from "../metadata/member_board.ts";
import type { Changed } from "../metadata/change_feed.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import type { StoredPaths } from "../metadata/stored_paths.ts";
import type { PublicKey, SecretKey } from "../nix/signature.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { NarStore } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { RecentProblems } from "../telemetry/recent_problems.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type {
  CaCertificates,
  HttpUpstreamSettings,
  UpstreamTrace,
} from "../upstream/http/upstream_fetch.ts";
import type { SpaceParts } from "../space/assemble_space.ts";

/** Parts that `buildApp` wires: the back ends, and the settings as plain values. */
export interface AppParts {
  readonly stores: StoreParts;
  readonly upstream: UpstreamParts;
  readonly identity: IdentityParts;
  readonly telemetry: TelemetryParts;
  readonly fetching: FetchingParts;
  readonly writes: WriteParts;
  readonly nowMs: () => number;
  readonly runtime: Runtime;
}

/** The stores of rows and files. */
export interface StoreParts {
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  /** Knows paths with a row while the database does not answer. Default: nobody does. */
  readonly storedPaths?: Pick<StoredPaths, "has"> | undefined;
  /** Counts pinned closures in a Worker; default: on this thread. */
  readonly closures?: ClosureLister;
  /** Another number after each change of rows and pins; default: for each call. */
  readonly generation?: () => number;
  /** Calls back after each write of narinfos or kept NARs, by whichever process. Default: never. */
  readonly whenArrived?: (on: (arrived: Changed) => void) => void;
  readonly spool: SpoolFolder;
  /** How another server sends a stored file itself. */
  readonly handOver?: HandOver | undefined;
  readonly space: SpaceParts;
  /** The leases of all members, which read from each other; `undefined`: there are no others. */
  readonly leases?: WorkLeases | undefined;
}

/** This member's folder in the spool. */
export interface SpoolFolder {
  readonly path: string;
  /** Called before a file is stored that another process left there. Default: it has one name. */
  claim?(path: string): void;
}

/** This member's place among the others, for displays. */
export interface MemberParts {
  readonly board: MemberBoard;
  readonly host: string;
  /** URL at which the other members reach this one. */
  readonly url: string | undefined;
  /** True if members may run on other machines. */
  readonly isShared: boolean;
}

/** The upstreams and the trusted keys. */
export interface UpstreamParts {
  readonly settings: readonly HttpUpstreamSettings[];
  readonly caCertificates: CaCertificates;
  readonly trustedKeys: readonly PublicKey[];
  readonly requireSignature: boolean;
  /** Adds trace headers and spans to requests. */
  readonly trace?: UpstreamTrace | undefined;
}

/** The identity of this cache for its clients. */
export interface IdentityParts {
  /** `undefined`: no signing. */
  readonly secretKey: SecretKey | undefined;
  readonly priority: number;
  readonly ownNames: OwnNames;
  /** True if clients reach it by HTTPS without a proxy. */
  readonly usesTls: boolean;
  /** The URL by which other machines reach this URL of it; default: the same. */
  readonly reachableUrl?: (url: string) => Promise<string>;
  /** The tokens of clients. */
  readonly tokens: readonly Token[];
}

/** Settings of clients' writes. */
export interface WriteParts {
  /** True if clients may remove narinfos and NARs. */
  readonly allowDelete: boolean;
  readonly uploads: UploadParts;
}

/** The uploads of clients. */
export interface UploadParts {
  /** False: larder answers PUT with 405. */
  readonly allowed: boolean;
  /** Keys of which one must have signed each upload. */
  readonly keys: readonly PublicKey[];
  /** True: without keys larder refuses every upload. */
  readonly requireSignature: boolean;
}

/** The bounds of requests to upstreams. */
export interface FetchingParts {
  readonly negativeTtlMs: number;
  /** How old a served narinfo may be until larder asks for new signatures; 0: for ever. */
  readonly narinfoRefreshMs: number;
  /** Threads that decompress and hash NARs. */
  readonly verifyThreads: number;
  /** `undefined`: larder prefetches nothing. */
  readonly prefetch: PrefetchParts | undefined;
  /** Default: larder keeps each file as it came. */
  readonly recompress?: RecompressParts | undefined;
}

export interface RecompressParts {
  readonly level: number;
  /** Default: the runtime's own, in a Worker. */
  readonly encoder?: NarEncoder;
}

export interface PrefetchParts {
  /** larder prefetches no larger NAR file; 0: none at all. */
  readonly narBytesMax: number;
}

/** Log, metrics and traces. */
export interface TelemetryParts {
  readonly log: Logger;
  /** The latest warnings and errors of `log`. */
  readonly problems: Pick<RecentProblems, "list">;
  readonly metrics: Metrics;
  /** True if `/metrics` is served. */
  readonly hasMetricsRoute: boolean;
  /** False without a consumer of request metrics. */
  readonly countsRequests: boolean;
  /** `undefined`: no tracing. */
  readonly tracer: Tracer | undefined;
  /** `undefined`: this larder reports to no other member. */
  readonly members?: MemberParts | undefined;
}
