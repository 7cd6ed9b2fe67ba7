/** Methods with a label value of their own; all others share `OTHER`. */
export const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OTHER"] as const;

export type Method = typeof METHODS[number];

/**
 * The end of an answer: written in full, aborted because the client left or larder ended the
 * connection, or broken by larder because the body is bad.
 */
export const OUTCOMES = ["complete", "aborted", "broken"] as const;

export type Outcome = typeof OUTCOMES[number];

/** The route label of a path without a route. */
export const UNMATCHED_ROUTE = "unmatched";

/** The router's routes by name, which this table does not know. */
export const REQUEST_LABELS = { method: METHODS, route: [] as readonly string[] } as const;
