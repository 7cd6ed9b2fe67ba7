const SECONDS_PER_DAY = 24 * 60 * 60;

/**
 * The Cache-Control value of each kind of answer. `no-transform` everywhere: proxies compress text
 * without it, which is no use for small or compressed bodies.
 */
export const CACHE_CONTROL = {
  /** Named by the hash of its bytes. */
  immutable: `public, max-age=${365 * SECONDS_PER_DAY}, immutable, no-transform`,
  /** A day: of a path's narinfo, only the signatures change. */
  narinfo: `public, max-age=${SECONDS_PER_DAY}, no-transform`,
  /** A document that should not change, though no hash proves it. */
  document: `public, max-age=${SECONDS_PER_DAY}, no-transform`,
  /** A document that another may replace. */
  changing: "public, max-age=60, no-transform",
  /** Settings of this server. */
  settings: "public, max-age=3600, no-transform",
  /** A missing answer may exist a moment later. */
  never: "no-store, no-transform",
} as const;

export type Lifetime = keyof typeof CACHE_CONTROL;

/** The value for an answer that only holders of a token may have: no shared cache may keep it. */
export function forTokenHolders(cacheControl: string): string {
  return cacheControl.replace(/^public,/, "private,");
}
