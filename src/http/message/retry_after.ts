/** The field of an answer to a request that may come again in a moment, in seconds. */
export const RETRY_AFTER = { "retry-after": "5" } as const;
