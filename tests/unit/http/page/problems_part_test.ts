import assert from "node:assert/strict";
import { problemsPart } from "../../../../src/http/page/problems_part.ts";
import { type EventKind, EVENTS, failedPart } from "../../../../src/telemetry/events.ts";
import type { ProblemStats, Stats } from "../../../../src/http/stats/stats.ts";

const NOON = "2026-01-02T12:00:00.000Z";

function problem(event: EventKind, host: string, over_at: string | null = null): ProblemStats {
  const facts = { upstream: `https://${host}.example`, hint: `hint of ${EVENTS[event].words}` };
  const times = { first_at: NOON, begun_at: NOON, last_at: NOON, over_at };
  return {
    part: failedPart(event),
    event,
    level: "warn",
    message: EVENTS[event].words,
    facts,
    count: 2,
    ...times,
  };
}

/** The rows as text, each in a line. */
function shown(
  problems: readonly ProblemStats[],
  faults: Stats["verdict"]["faults"] = [],
): readonly string[] {
  const verdict = { is_well: faults.length === 0, text: "", faults };
  const stats = { problems, verdict, at: NOON } as unknown as Stats;
  const { text } = problemsPart(stats, { isWhole: false, range: "day" });
  return text.split("</li>").map((row) => row.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim())
    .filter((row) => row !== "");
}

Deno.test("page: an outage of several upstreams is one row with one thing to do", () => {
  const rows = shown([
    ...[problem("upstream-failed", "a"), problem("upstream-down", "b")],
    problem("upstream-lost-nar", "a"),
  ]);
  assert.deepEqual(rows, [
    "warning Upstream is down https://b.example Upstream failed, https://a.example " +
    "4 times, at 12:00 UTC What to do: hint of upstream is down.",
    "warning Upstream lost NAR https://a.example 2 times, at 12:00 UTC " +
    "What to do: hint of upstream lost nar.",
  ]);
});

Deno.test("page: a remedy in the status line does not stand in the list again", () => {
  const fault = { level: "error", text: "No upstream is of use" } as const;
  const [row = ""] = shown([problem("upstream-down", "a")], [
    { ...fault, hint: "hint of something else; hint of upstream is down" },
  ]);
  assert.match(row, /What to do: see the status above \.$/);
  const [other = ""] = shown([problem("upstream-down", "a")], [{ ...fault, hint: "else" }]);
  assert.match(other, /What to do: hint of upstream is down\.$/);
});

Deno.test("page: an outage that came again says since when, beside all its times", () => {
  const twice = { ...problem("database-away", "a"), facts: {} };
  const at = (clock: string) => `2026-01-02T${clock}:00.000Z`;
  const times = { first_at: at("09:10"), begun_at: at("11:30"), last_at: at("11:40") };
  assert.deepEqual(shown([{ ...twice, ...times }]), [
    "warning Database does not answer 2 times, from 09:10 UTC to 11:40 UTC ; again since 11:30 UTC",
  ]);
  const [over = ""] = shown([{ ...twice, ...times, over_at: at("11:50") }]);
  assert.match(over, /^over .* 2 times, from 09:10 UTC to 11:40 UTC ; over since 11:50 UTC/);
});

Deno.test("page: a lasting problem gives an outage its title, even over a graver past one", () => {
  const [row = ""] = shown([
    problem("upstream-down", "a", NOON),
    problem("upstream-failed", "b"),
  ]);
  assert.match(
    row,
    /^warning Upstream failed https:\/\/b\.example Upstream is down, .* over since/,
  );
  assert.match(row, /What to do: hint of upstream failed\.$/);
});
