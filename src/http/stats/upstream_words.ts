import { reasonInWords, REASONS } from "./problem_words.ts";
import { counted, formatBytes, formatMs } from "../../base/format_units.ts";
import type { UpstreamStats, WaitStats } from "./stats.ts";
import type { UpstreamState } from "../../upstream/upstream_health.ts";

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

type AnsweredWords = Pick<UpstreamStats, "last_answer" | "last_nar_answer">;

/** The last answer to a narinfo or a NAR request; `null` before the first. */
export function lastAnswerOf(one: AnsweredWords): UpstreamStats["last_answer"] {
  return isNarLast(one) ? one.last_nar_answer : one.last_answer;
}

/** Result of the last request to an upstream; its time is that of the last answer. */
export function lastAnswerWords(one: AnsweredWords & Pick<UpstreamStats, "latencies_ms">): string {
  const answer = lastAnswerOf(one);
  if (answer === null) {
    return one.latencies_ms.length === 0 ? "no request yet" : "its answers were not needed yet";
  }
  const { result } = answer;
  if (result !== "found" && result !== "absent") return "failed";
  const words = REASONS[result] ?? "";
  return isNarLast(one) ? `NAR ${words}` : words;
}

function isNarLast({ last_answer, last_nar_answer }: AnsweredWords): boolean {
  return last_nar_answer !== null && last_nar_answer.at > (last_answer?.at ?? "");
}

/** Who was waited for, and how long; `undefined`: nobody was. */
export function waitWords({ count, late, total_ms, longest_ms }: WaitStats): string | undefined {
  if (count === 0) return undefined;
  const mean = Math.round(total_ms / count);
  const vain = late === 0 ? "" : `, ${counted(late, "time")} in vain`;
  return `clients waited for it ${counted(count, "time")}, ${mean} ms on average and ` +
    `${longest_ms} ms at most${vain}`;
}

/** How its slow answers were, and which path waited last; `undefined`: none has. */
export function slownessWords(
  { slow_answers, last_wait }: Pick<UpstreamStats, "slow_answers" | "last_wait">,
): string | undefined {
  const { count, longest_ms } = slow_answers;
  const slow = count === 0
    ? []
    : [`${counted(count, "answer")} took over a second, ${formatMs(longest_ms)} at most`];
  const last = last_wait === null ? [] : [
    `last waited for it: ${last_wait.path}, ${formatMs(last_wait.ms)}${
      last_wait.bytes_per_second === null ? "" : ` at ${formatBytes(last_wait.bytes_per_second)}/s`
    }`,
  ];
  return slow.length + last.length === 0 ? undefined : [...slow, ...last].join("; ");
}

/** How fast its NARs come; `undefined`: none has come. */
export function rateWords(bytesPerSecond: number | null): string | undefined {
  return bytesPerSecond === null ? undefined : `NARs ${formatBytes(bytesPerSecond)}/s`;
}

/** Why an upstream failed last, for people. */
export function lastErrorWords(
  { request, reason, status }: Omit<LastErrorStats, "at" | "hint">,
): string {
  const words = reasonInWords(reason, status);
  return request === "nar" ? words.replace("answered with", "answered a NAR request with") : words;
}
