import { Buffer } from "node:buffer";

/** Pulls that the database keeps: with the longest rows, one MiB. */
export const PULLS_MAX = 200;

/** The most bytes of each text. */
export const PULL_BYTES_MAX = { summary: 1_500, paths: 3_700 } as const;

/** The most bytes of a client's name. */
const CLIENT_BYTES_MAX = 200;

/** A pull without its paths. */
export interface PullSummary {
  readonly id: string;
  readonly client: string;
  /** JSON of `history/pulls.ts`. */
  readonly summary: string;
}

export interface PullRow extends PullSummary {
  /** JSON of the slowest paths. */
  readonly paths: string;
}

/** Keeps the newest pulls of all members, over restarts. */
export interface PullKeeper {
  /** Adds pulls, the oldest first, and removes the oldest beyond `PULLS_MAX`. Known ids stay. */
  recordPulls(rows: readonly PullRow[]): Promise<void>;
  /** The newest first; of one client, if `client` is given. */
  pulls(countMax: number, client?: string): Promise<readonly PullSummary[]>;
  /** `undefined`: there is none, or it was long ago. */
  findPull(id: string): Promise<PullRow | undefined>;
}

/** A client as the database names it: a token's name may be long. */
export function boundedClient(client: string): string {
  if (Buffer.byteLength(client) <= CLIENT_BYTES_MAX) return client;
  return Buffer.from(client).subarray(0, CLIENT_BYTES_MAX).toString().replace(/\uFFFD+$/, "");
}
