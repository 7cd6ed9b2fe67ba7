import { UPSTREAM_DOWN } from "../../telemetry/events.ts";
import type { Problem } from "../../telemetry/recent_problems.ts";
import { ERROR_FOR_MS, type UpstreamState, upstreamState } from "../../upstream/upstream_health.ts";
import type { UpstreamStats } from "./stats.ts";

/** The figures that decide the state of an upstream. */
export interface ShownSigns {
  readonly is_up: boolean;
  readonly sends_nars: boolean;
  readonly last_answer: UpstreamStats["last_answer"];
  readonly last_nar_answer: UpstreamStats["last_nar_answer"];
  readonly last_error:
    | Pick<NonNullable<UpstreamStats["last_error"]>, "request" | "reason" | "at">
    | null;
}

/** The state of an upstream by its figures. */
export function upstreamStateOf(one: ShownSigns, atMs: number): UpstreamState {
  const { is_up, sends_nars, last_answer, last_nar_answer, last_error } = one;
  const signs = { last: timed(last_answer), lastNar: timed(last_nar_answer) };
  const health = { isUp: is_up, sendsNars: sends_nars };
  return upstreamState({ ...health, ...signs, lastError: timed(last_error) }, atMs);
}

/**
 * The problems as the upstreams' states have them. The failure of an upstream that is up is over,
 * even without an answer. It is an error while no upstream is of use.
 */
export function judgedProblems(
  problems: readonly Problem[],
  upstreams: readonly UpstreamStats[],
  atMs: number,
): readonly Problem[] {
  const up = new Set(
    upstreams.filter((one) => upstreamStateOf(one, atMs) === "up").map(({ url }) => url),
  );
  const isGrave = up.size === 0 && upstreams.length > 0;
  return problems.map((problem) => {
    const { part, facts, lastAtMs, overAtMs } = problem;
    if (part !== UPSTREAM_DOWN || overAtMs !== undefined) return problem;
    if (!up.has(String(facts["upstream"]))) {
      return isGrave ? { ...problem, level: "error" } : problem;
    }
    return { ...problem, overAtMs: Math.min(atMs, lastAtMs + ERROR_FOR_MS) };
  });
}

function timed<Figures extends { readonly at: string }>(figures: Figures | null) {
  return figures === null ? undefined : { ...figures, atMs: Date.parse(figures.at) };
}
