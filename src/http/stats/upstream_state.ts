import type { UpstreamStats } from "./stats.ts";

/** The causes for which a running upstream is of no use. */
const USELESS = ["untrusted", "status", "garbage"] as const;

/**
 * "status": it answers with errors. "nars": only to NAR requests. "garbage": it sends no narinfos.
 */
export type UpstreamState = "up" | "down" | "nars" | typeof USELESS[number];

/** Nobody may ask it again for hours: an older error says nothing of the present. */
const ERROR_FOR_MS = 60_000;

/** The figures that decide it. */
export interface UpstreamSigns {
  readonly is_up: boolean;
  readonly last_answer: UpstreamStats["last_answer"];
  readonly last_nar_answer: UpstreamStats["last_nar_answer"];
  readonly last_error: Pick<NonNullable<UpstreamStats["last_error"]>, "reason" | "at"> | null;
}

/** The state of an upstream, which the page and `larder status` show. */
export function upstreamStateOf(one: UpstreamSigns, atMs: number): UpstreamState {
  const { is_up, last_answer, last_nar_answer, last_error } = one;
  if (!is_up) return "down";
  // After a timeout or a refused connection, only an answer makes it up.
  const last = last_answer?.result ?? last_error?.reason;
  const cause = USELESS.find((one) => one === last) ?? "up";
  const at = last_answer?.at ?? last_error?.at ?? "";
  // Only a key mends an upstream that is not trusted.
  if (cause === "untrusted" || cause !== "up" && isPresent(at, atMs)) return cause;
  const failsNars = last_nar_answer?.result === "status" && isPresent(last_nar_answer.at, atMs);
  return failsNars ? "nars" : "up";
}

function isPresent(at: string, atMs: number): boolean {
  return atMs - Date.parse(at) < ERROR_FOR_MS;
}
