/**
 * A request of larder's own commands, such as `larder warm`, carries this header. No client gets
 * its bytes, so the figures count it apart.
 */
export const COMMAND_HEADER = "x-larder-command";

/** Set in the response to such a request, where a prefetch has brought the file. */
export const PREFETCHED_HEADER = "x-larder-prefetched";
