import { REASONS } from "./problem_words.ts";
import type { UpstreamStats } from "./stats.ts";
import type { UpstreamState } from "./upstream_state.ts";

/** The states of an upstream, for people. */
export const UPSTREAM_STATES: Readonly<Record<UpstreamState, string>> = {
  up: "up",
  down: "down",
  untrusted: "not trusted",
  status: "fails",
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
export function lastErrorWords({ reason }: { readonly reason: string }): string {
  return REASONS[reason] ?? "unknown";
}
