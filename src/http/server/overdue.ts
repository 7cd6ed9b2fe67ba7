import type { Phase } from "./activity.ts";

/** Longest time without progress by phase; `undefined`: no limit. */
export type PhaseLimits = Readonly<Record<Phase, number | undefined>>;

const SECOND_MS = 1_000;

/** Limits in milliseconds. They are no options, as no well-behaved client meets them. */
export const PHASE_LIMITS_MS: PhaseLimits = {
  // As nginx; a client keeps a connection for the next path of a closure.
  idle: 75 * SECOND_MS,
  // From its first byte to its last. A head has a few hundred bytes and leaves in one packet, so a
  // byte a second is no progress.
  head: 20 * SECOND_MS,
  // Between two pieces.
  body: 30 * SECOND_MS,
  // From the first byte to the last: the answer waits for it.
  skipping: 20 * SECOND_MS,
  // The upstreams have timeouts of their own.
  answering: undefined,
  held: undefined,
  // Between two pieces. Nix aborts a transfer that stalls for 300 seconds, and stalls one itself
  // while it unpacks.
  sending: 300 * SECOND_MS,
  // Between two pieces.
  lingering: 5 * SECOND_MS,
};

/** The logged reason for closing a connection without progress. */
export const OVERDUE_REASON: Readonly<Record<Phase, string>> = {
  idle: "no request",
  head: "incomplete request",
  body: "incomplete request body",
  skipping: "incomplete request body",
  answering: "no answer",
  held: "no answer",
  sending: "stalled client",
  lingering: "refused client stays connected",
};
