import type { ServerJson } from "../client/server_json.ts";

export interface ShownVerdict {
  readonly isWell: boolean;
  /** Faults with their remedies, or that all is well. The first line says which. */
  readonly lines: readonly string[];
}

/** The verdict of the server. */
export function shownVerdict(stats: ServerJson): ShownVerdict {
  const verdict = stats.at("verdict");
  const text = verdict.at("text").text ?? "The server gives no verdict: is it larder?";
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
