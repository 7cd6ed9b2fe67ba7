import assert from "node:assert/strict";
import { problemsPart } from "../../../../src/http/page/problems_part.ts";
import type { ProblemStats, Stats } from "../../../../src/http/stats/stats.ts";

const NOON = "2026-01-02T12:00:00.000Z";

function problem(message: string, host: string, over_at: string | null = null): ProblemStats {
  const facts = { upstream: `https://${host}.example`, hint: `hint of ${message}` };
  return { level: "warn", message, facts, count: 2, first_at: NOON, last_at: NOON, over_at };
}

/** The rows as text, each in a line. */
function shown(problems: readonly ProblemStats[]): readonly string[] {
  const stats = { problems, at: NOON } as Stats;
  const { text } = problemsPart(stats, { isWhole: false, range: "day" });
  return text.split("</li>").map((row) => row.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim())
    .filter((row) => row !== "");
}

Deno.test("page: an outage of several upstreams is one row with one thing to do", () => {
  const rows = shown([
    ...[problem("upstream failed", "a"), problem("upstream is down", "b")],
    problem("upstream lost nar", "a"),
  ]);
  assert.deepEqual(rows, [
    "warning Upstream is down https://b.example Upstream failed, https://a.example " +
    "4 times, at 12:00 UTC What to do: hint of upstream is down.",
    "warning Upstream lost NAR https://a.example 2 times, at 12:00 UTC " +
    "What to do: hint of upstream lost nar.",
  ]);
});

Deno.test("page: what lasts gives an outage its title, also if what is over was graver", () => {
  const [row = ""] = shown([
    problem("upstream is down", "a", NOON),
    problem("upstream failed", "b"),
  ]);
  assert.match(
    row,
    /^warning Upstream failed https:\/\/b\.example Upstream is down, .* over since/,
  );
  assert.match(row, /What to do: hint of upstream failed\.$/);
});
