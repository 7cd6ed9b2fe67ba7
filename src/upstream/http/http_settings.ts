/** The settings of one upstream; plain data, so that a Worker can receive it. */
export interface HttpUpstreamSettings {
  /** URL without credentials, query and trailing slash. */
  readonly url: string;
  /** The value of the Authorization header, where there are credentials. */
  readonly authorization?: string;
  /** Set by the operator; overrides the upstream's own nix-cache-info. */
  readonly priority?: number;
  /** True where the environment names a proxy, which `fetch` uses by itself. */
  readonly viaProxy?: boolean;
  readonly dialTimeoutMs: number;
  readonly headerTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly userAgent: string;
}

/** PEM texts of certificate authorities to trust besides the system's. */
export type CaCertificates = readonly string[];
