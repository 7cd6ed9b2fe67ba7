import { counted } from "../../base/format_units.ts";
import type { Told } from "../client/told.ts";

export interface Verdict {
  readonly isWell: boolean;
  /** For people: what is wrong, or that nothing is. */
  readonly sentence: string;
}

/** An error of longer ago is history. */
const RECENT_MS = 15 * 60_000;

/** Judges the figures of a server: its upstreams, and its errors of the last quarter of an hour. */
export function verdictOf(stats: Told, nowMs: number): Verdict {
  const upstreams = stats.at("upstreams").list;
  const down = upstreams.filter((one) => !one.at("is_up").isTrue).length;
  const errors =
    stats.at("problems").list.filter((one) =>
      one.at("level").text === "error" && nowMs - (one.at("last_at").timeMs ?? 0) < RECENT_MS
    ).length;
  const wrong = [
    ...down === 0 ? [] : [`${down} of ${counted(upstreams.length, "upstream")} down`],
    ...errors === 0 ? [] : [`${counted(errors, "error")} in the last 15 minutes`],
  ];
  if (wrong.length > 0) return { isWell: false, sentence: `✗ ${wrong.join(", ")}` };
  return { isWell: true, sentence: "✓ all is well" };
}
