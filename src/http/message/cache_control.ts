const DAY_S = 24 * 60 * 60;

/**
 * What each answer may be cached for, in one place. `no-transform` everywhere: compressing what
 * is small or compressed is no use, and proxies do it to text that lacks the word.
 */
export const CACHE_CONTROL = {
  /** Named by the hash of its bytes. */
  immutable: `public, max-age=${365 * DAY_S}, immutable, no-transform`,
  /** A path's narinfo does not change, but for signatures. */
  narinfo: `public, max-age=${DAY_S}, no-transform`,
  /** A document that stays as it is, as far as anybody knows: no hash vouches for it. */
  document: `public, max-age=${DAY_S}, no-transform`,
  /** A document that another may take the place of. */
  changing: "public, max-age=60, no-transform",
  /** Settings of this server. */
  settings: "public, max-age=3600, no-transform",
  /** What is missing now may be here in a moment. */
  never: "no-store, no-transform",
} as const;

export type Lifetime = keyof typeof CACHE_CONTROL;
