import { counted } from "../../base/format_units.ts";
import type { ServerJson } from "../client/server_json.ts";

export interface ShownVerdict {
  readonly isWell: boolean;
  /** Faults with their remedies, or that all is well. The first line says which. */
  readonly lines: readonly string[];
}

/** An error of longer ago is history. */
const RECENT_MS = 15 * 60_000;

/** The verdict of the server; that of an older one is made of its figures. */
export function shownVerdict(stats: ServerJson, nowMs: number): ShownVerdict {
  const verdict = stats.at("verdict");
  const text = verdict.at("text").text;
  if (text === undefined) return verdictOnFigures(stats, nowMs);
  const isWell = verdict.at("is_well").isTrue;
  return {
    isWell,
    lines: [`${isWell ? "✓" : "✗"} ${text}`, ...verdict.at("faults").list.flatMap(fault)],
  };
}

/** A line, and the remedy below it. */
function fault(one: ServerJson): readonly string[] {
  const mark = one.at("level").text === "error" ? "✗" : "!";
  const hint = one.at("hint").text;
  return [`  ${mark} ${one.at("text").text ?? ""}`, ...hint === undefined ? [] : [`    ${hint}`]];
}

/** Of its upstreams, and its errors of the last quarter of an hour. */
function verdictOnFigures(stats: ServerJson, nowMs: number): ShownVerdict {
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
  if (wrong.length > 0) return { isWell: false, lines: [`✗ ${wrong.join(", ")}`] };
  return { isWell: true, lines: ["✓ All is well"] };
}
