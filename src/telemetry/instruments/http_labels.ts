/** Methods that have a label value of their own; all others share `OTHER`. */
export const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OTHER"] as const;

export type Method = typeof METHODS[number];

/**
 * How an answer ended: its last byte was handed to the network; the client left before; or we
 * broke it off, so that nobody takes it for whole.
 */
export const OUTCOMES = ["complete", "aborted", "broken"] as const;

export type Outcome = typeof OUTCOMES[number];

/** The name of a route, for a path that has none. */
export const UNMATCHED_ROUTE = "unmatched";

/** Routes are those of the router, by name: their values are not known here. */
export const REQUEST_LABELS = { method: METHODS, route: [] as readonly string[] } as const;
