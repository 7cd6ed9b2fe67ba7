/** The programs and disks that larder works with, except upstreams. */
export const BACK_ENDS = ["database", "storage", "redis"] as const;

export type BackEnd = typeof BACK_ENDS[number];

/** The operations of each back end. */
export const OPERATIONS = {
  database: ["read", "write"],
  /** "open" finds a file, or its absence. */
  storage: ["open", "read", "write", "remove", "list"],
  redis: ["acquire", "renew", "free", "read", "probe"],
} as const satisfies Readonly<Record<BackEnd, readonly string[]>>;

export type OperationOf<Name extends BackEnd> = typeof OPERATIONS[Name][number];

/** The end of an operation. An absence, a refusal and a held lock are answers: "ok". */
export const OPERATION_OUTCOMES = ["ok", "failed", "cancelled"] as const;

export const OPERATION_LABELS = {
  backend: BACK_ENDS,
  operation: Object.values(OPERATIONS).flat(),
} as const;

/** The states of a member, as in /stats. */
export const MEMBER_STATES = ["running", "draining", "gone", "left"] as const;
