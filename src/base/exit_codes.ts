/** The exit statuses of all commands. */
export const EXIT = {
  ok: 0,
  /** The command was valid and did not succeed. */
  failed: 1,
  /** Invalid arguments, variables or configuration file; nothing was started. */
  usage: 2,
  /** `larder plan`: some paths are nowhere, so a client has to build them. */
  nowhere: 3,
} as const;
