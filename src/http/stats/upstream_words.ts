import { reasonInWords, REASONS } from "./problem_words.ts";
import type { UpstreamStats } from "./stats.ts";
import type { UpstreamState } from "./upstream_state.ts";

type LastErrorStats = NonNullable<UpstreamStats["last_error"]>;

/** The states of an upstream, for people. */
export const UPSTREAM_STATES: Readonly<Record<UpstreamState, string>> = {
  up: "up",
  down: "down",
  untrusted: "not trusted",
  status: "fails",
  nars: "fails",
  garbage: "fails",
};

/** What came of the last request to an upstream; its time is that of the last answer. */
export function lastAnswerWords(
  { last_answer, latencies_ms }: Pick<UpstreamStats, "last_answer" | "latencies_ms">,
): string {
  if (last_answer === null) {
    return latencies_ms.length === 0 ? "no request yet" : "its answers were not needed yet";
  }
  const { result } = last_answer;
  return result === "found" || result === "absent" ? REASONS[result] ?? "" : "failed";
}

/** Why an upstream failed last, for people. */
export function lastErrorWords(
  { request, reason, status }: Omit<LastErrorStats, "at" | "hint">,
): string {
  const words = reasonInWords(reason, status);
  return request === "nar" ? words.replace("answered with", "answered a NAR request with") : words;
}
