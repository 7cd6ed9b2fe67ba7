import type { LastAnswer, LastError } from "./last_answers.ts";

/** The causes for which a running upstream is of no use. */
const UNUSABLE = ["untrusted", "status", "garbage"] as const;

/**
 * "down": no narinfo request is answered. "status": it answers with errors. "nars": only NAR
 * requests fail. "garbage": it sends no narinfos.
 */
export type UpstreamState = "up" | "down" | "nars" | typeof UNUSABLE[number];

/**
 * An older error counts no more: clients may send the upstream no request for hours. larder itself
 * asks again for a narinfo before that.
 */
export const ERROR_FOR_MS = 8_000;

/** The evidence of the state of an upstream: its health, and its last answers. */
export interface UpstreamEvidence {
  readonly isUp: boolean;
  /** False where the last NAR request got no answer. */
  readonly sendsNars: boolean;
  /** The last answer to a narinfo request, and to a NAR request. */
  readonly last: PlainFacts<LastAnswer> | undefined;
  readonly lastNar: PlainFacts<LastAnswer> | undefined;
  readonly lastError: PlainFacts<Pick<LastError, "reason" | "request" | "atMs">> | undefined;
}

/** Another version of larder may use other words. */
type PlainFacts<Facts> = {
  readonly [Name in keyof Facts]: Facts[Name] extends number ? number : string;
};

/** The state of an upstream, which the log, the page and `larder status` show. */
export function upstreamState(evidence: UpstreamEvidence, nowMs: number): UpstreamState {
  const { isUp, sendsNars, last, lastNar, lastError } = evidence;
  if (!isUp) return "down";
  const isPresent = ({ atMs }: { readonly atMs: number }) => nowMs - atMs < ERROR_FOR_MS;
  // Before the first narinfo request, a probe may have found the cause.
  const probed = lastError?.request === "nar" ? undefined : lastError;
  const latest = last ?? (probed && { result: probed.reason, atMs: probed.atMs });
  // After a timeout or a refused connection, only an answer makes it up.
  const cause = UNUSABLE.find((one) => one === latest?.result);
  // Only a key helps an upstream that is not trusted.
  if (latest && cause && (cause === "untrusted" || isPresent(latest))) return cause;
  if (!sendsNars) return "nars";
  return lastNar?.result === "status" && isPresent(lastNar) ? "nars" : "up";
}
