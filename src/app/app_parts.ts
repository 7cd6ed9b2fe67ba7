import type { ClosureLister } from "../pins/pinned_closures.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import type { PublicKey, SecretKey } from "../nix/signature.ts";
import type { NarStore } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { RecentProblems } from "../telemetry/recent_problems.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type { CaCertificates, HttpUpstreamSettings } from "../upstream/http/http_settings.ts";
import type { UpstreamTrace } from "../upstream/http/upstream_trace.ts";
import type { SpaceParts } from "./build_space.ts";

/** What `buildApp` wires: the back ends, and the settings as plain values. */
export interface AppParts {
  readonly stores: StoreParts;
  readonly upstream: UpstreamParts;
  readonly identity: IdentityParts;
  readonly telemetry: TelemetryParts;
  readonly negativeTtlMs: number;
  /** Whether clients may remove narinfos and NARs. */
  readonly allowDelete: boolean;
  readonly nowMs: () => number;
}

/** Where rows and files live. */
export interface StoreParts {
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  /** Where pinned closures are counted beside this thread; else they are on it. */
  readonly closures?: ClosureLister;
  readonly tempFolder: string;
  readonly space: SpaceParts;
}

/** The upstreams, and whom to trust. */
export interface UpstreamParts {
  readonly settings: readonly HttpUpstreamSettings[];
  readonly caCertificates: CaCertificates;
  readonly trustedKeys: readonly PublicKey[];
  readonly requireSignature: boolean;
  /** Adds trace headers and spans to requests. */
  readonly trace?: UpstreamTrace | undefined;
}

/** What this cache is to its clients. */
export interface IdentityParts {
  /** `undefined` signs nothing. */
  readonly secretKey: SecretKey | undefined;
  readonly priority: number;
  /** Names of this cache, without ports. */
  readonly ownNames: readonly string[];
  /** Whether clients reach it by HTTPS without a proxy. */
  readonly usesTls: boolean;
}

/** Log, metrics and traces. */
export interface TelemetryParts {
  readonly log: Logger;
  /** The latest warnings and errors of `log`. */
  readonly problems: Pick<RecentProblems, "list">;
  readonly metrics: Metrics;
  /** Whether `/metrics` is answered. */
  readonly hasMetricsRoute: boolean;
  /** False where nobody looks at the figures of single requests. */
  readonly countsRequests: boolean;
  /** `undefined` where nothing is traced. */
  readonly tracer: Tracer | undefined;
}
