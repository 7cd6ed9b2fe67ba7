import { dice } from "../runtime/current.ts";
import type { LockName } from "./locks.ts";

/** Purposes of leases: the values of `lock_type` in logs. */
export type LockType =
  | "download:nar"
  | "download:narinfo"
  | "lru"
  | "repair"
  | "recompress"
  | "pins";

/** How often to try again for a lock, and when. */
export interface RetryPolicy {
  /** Tries after the first one. */
  readonly retriesMax: number;
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  readonly hasJitter: boolean;
}

/** Work that one member at a time should do. */
export interface LeaseJob {
  readonly lockType: LockType;
  /** Names the NAR file or the store path; none for work on the whole storage. */
  readonly key?: string;
  /** The hash of the same, for the log. */
  readonly hash?: string;
  readonly ttlMs: number;
  readonly retryPolicy: RetryPolicy;
  /** True if the holder's URL is as good as the lock: nobody waits then. */
  readonly mayStream?: true;
  /** Whether another member has done the work meanwhile. Never rejects. */
  readonly isDone?: () => Promise<boolean>;
}

/** The `type` label of each lock; `undefined` for one that the metrics leave out. */
export const METRIC_TYPES = {
  "download:nar": "download",
  "download:narinfo": "download",
  lru: "lru",
  repair: undefined,
  recompress: undefined,
  pins: undefined,
} as const satisfies Readonly<Record<LockType, "download" | "lru" | undefined>>;

export function lockNameOf({ lockType, key }: LeaseJob): LockName {
  return key === undefined ? lockType : `${lockType}:${key}`;
}

/** The pause before a retry; `retries` counts from 0. It doubles, and varies by a half. */
export function delayMs(
  { initialDelayMs, maxDelayMs, hasJitter }: RetryPolicy,
  retries: number,
): number {
  const longestMs = Math.min(maxDelayMs, initialDelayMs * 2 ** retries);
  return hasJitter ? longestMs * (1 - dice.fraction() / 2) : longestMs;
}
