import { formatBytes, formatMs } from "../../base/format_units.ts";
import { eventRow } from "../../telemetry/events.ts";
import type { ProblemStats } from "./stats.ts";

/** Reasons of the log, for people. */
export const REASONS: Readonly<Record<string, string>> = {
  found: "found",
  absent: "not found",
  timeout: "it did not answer in time",
  unreachable: "it cannot be reached",
  status: "it answered with an error",
  garbage: "its answer was no narinfo",
  untrusted: "no trusted key has signed its answer",
  upstream: "it broke the transfer off",
  stalled: "it stopped sending",
};

/** A reason of the log, for people, with the status of the response if that is the reason. */
export function reasonInWords(reason: string, status: unknown): string {
  if (reason === "status" && typeof status === "number") {
    return `it answered with HTTP status ${status}`;
  }
  return REASONS[reason] ?? reason;
}

/** The facts that stand elsewhere in a problem's row. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["hint", "name", "upstream", "reason"]);

/** The remedy for a problem; `undefined` if that is unknown. */
export function whatToDo(
  { event, facts }: Pick<ProblemStats, "event" | "facts">,
): string | undefined {
  return typeof facts["hint"] === "string" ? facts["hint"] : eventRow(event)?.remedy;
}

/** Its subject, if it has one, and its facts in words with their units. */
export function factsInWords({ facts }: Pick<ProblemStats, "facts">): readonly string[] {
  const { upstream, reason, status, name } = facts;
  const others = Object.entries(facts).filter(([fact]) =>
    !SHOWN_ELSEWHERE.has(fact) && !(fact === "nar" && name !== undefined) &&
    !(fact === "status" && reason === "status")
  );
  return [
    ...name === undefined ? [] : [String(name)],
    ...upstream === undefined ? [] : [String(upstream)],
    ...reason === undefined ? [] : [reasonInWords(String(reason), status)],
    ...others.map(([name, value]) => inWords(name, value)),
  ];
}

function inWords(name: string, value: string | number | boolean): string {
  const words = name.replace(/_(bytes|ms)$/, "").replaceAll("_", " ");
  if (typeof value !== "number") return `${words} ${value}`;
  if (name === "bytes_per_second") return `${formatBytes(value)}/s`;
  if (name.endsWith("_ms")) return `${words} ${formatMs(value)}`;
  const isSize = /_bytes$|_size$/.test(name);
  return `${words} ${isSize ? formatBytes(value) : value.toLocaleString("en-US")}`;
}

/** The words of an event as a sentence's begin. */
export function titleOf({ event, message }: Pick<ProblemStats, "event" | "message">): string {
  const text = eventRow(event)?.title ?? message.replace(/\bnar(s?)\b/g, "NAR$1");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
