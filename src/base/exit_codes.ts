/** What the shell is told. */
export const EXIT = {
  ok: 0,
  /** The command was understood and did not succeed. */
  failed: 1,
  /** The words, variables or configuration file were wrong; nothing was started. */
  usage: 2,
} as const;
