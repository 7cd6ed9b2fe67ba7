import type { Phase } from "./activity.ts";

/** How long a phase may stand still; `undefined` for ever. */
export type PhaseLimits = Readonly<Record<Phase, number | undefined>>;

const SECOND_MS = 1_000;

/** In milliseconds. Nobody who is well has to know them: they are no options. */
export const PHASE_LIMITS_MS: PhaseLimits = {
  // As nginx; a client keeps a connection for the next path of a closure.
  idle: 75 * SECOND_MS,
  // A head has a few hundred bytes and leaves in one packet. From its first byte to its last:
  // a byte a second is no progress.
  head: 20 * SECOND_MS,
  // Between two pieces.
  body: 30 * SECOND_MS,
  // From the first byte to the last: the answer is ready, and waits for it.
  skipping: 20 * SECOND_MS,
  // The upstreams have limits of their own.
  answering: undefined,
  // Between two pieces. Nix gives up on a transfer that stands still after 300 seconds, and
  // lets one wait itself while it unpacks.
  sending: 300 * SECOND_MS,
  // Between two pieces.
  lingering: 5 * SECOND_MS,
};

/** What the log says of a connection that was closed for standing still. */
export const OVERDUE_REASON: Readonly<Record<Phase, string>> = {
  idle: "no request",
  head: "half a request",
  body: "half a request body",
  skipping: "half a request body",
  answering: "no answer",
  sending: "client takes nothing",
  lingering: "refused client stays",
};
