/** Purposes of a lock. */
export const LOCK_TYPES = ["download", "lru"] as const;

/** "distributed": a lock that all members share; "local": one of this process alone. */
export const LOCK_MODES = ["local", "distributed"] as const;
