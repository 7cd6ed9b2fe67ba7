import assert from "node:assert/strict";
import { factsInWords, titleOf, whatToDo } from "../../../../src/http/stats/problem_words.ts";
import { type EventKind, EVENTS, failedPart } from "../../../../src/telemetry/events.ts";
import type { ProblemStats } from "../../../../src/http/stats/stats.ts";

function problem(event: EventKind, facts: ProblemStats["facts"] = {}): ProblemStats {
  const times = {
    first_at: "2026-01-01",
    begun_at: "2026-01-01",
    last_at: "2026-01-01",
    over_at: null,
  };
  return {
    part: failedPart(event),
    event,
    level: "warn",
    message: EVENTS[event].words,
    facts,
    count: 1,
    ...times,
  };
}

Deno.test("problem words: facts have units, names stand for files, hints for themselves", () => {
  const facts = { nar: "abc.nar.xz", name: "hello-1.0", limit_bytes: 3 * 2 ** 30, count: 1_200 };
  const told = problem("nar-without-room", { ...facts, reason: "timeout", hint: "raise it" });
  assert.deepEqual(factsInWords(told), [
    "hello-1.0",
    "it did not answer in time",
    "limit 3.0 GiB",
    "count 1,200",
  ]);
  assert.deepEqual(factsInWords(problem("upstream-failed", { reason: "status", status: 503 })), [
    "it answered with HTTP status 503",
  ]);
  assert.equal(titleOf(told), "NAR not kept");
  assert.equal(whatToDo(told), "raise it");
  assert.match(whatToDo(problem("stored-nar-damaged")) ?? "", /^check the disk/);
  assert.equal(whatToDo({ event: "something-new", facts: {} }), undefined);
});
