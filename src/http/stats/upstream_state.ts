import type { UpstreamStats } from "./stats.ts";

/** The causes for which a running upstream is of no use. */
const USELESS = ["untrusted", "status", "garbage"] as const;

/** "status": it answers with errors. "garbage": it sends no narinfos. */
export type UpstreamState = "up" | "down" | typeof USELESS[number];

/** The figures that decide it. */
export interface UpstreamSigns {
  readonly is_up: boolean;
  readonly last_answer: Pick<NonNullable<UpstreamStats["last_answer"]>, "result"> | null;
  readonly last_error: Pick<NonNullable<UpstreamStats["last_error"]>, "reason"> | null;
}

/** The state of an upstream, which the page and `larder status` show. */
export function upstreamStateOf(one: UpstreamSigns): UpstreamState {
  const { is_up, last_answer, last_error } = one;
  if (!is_up) return "down";
  // After a timeout or a refused connection, only an answer makes it up.
  const last = last_answer?.result ?? last_error?.reason;
  return USELESS.find((cause) => cause === last) ?? "up";
}
