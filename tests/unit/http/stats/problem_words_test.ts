import assert from "node:assert/strict";
import { factsInWords, titleOf, whatToDo } from "../../../../src/http/stats/problem_words.ts";
import type { ProblemStats } from "../../../../src/http/stats/stats.ts";

function problem(message: string, facts: ProblemStats["facts"] = {}): ProblemStats {
  const times = {
    first_at: "2026-01-01",
    begun_at: "2026-01-01",
    last_at: "2026-01-01",
    over_at: null,
  };
  return { part: message, level: "warn", message, facts, count: 1, ...times };
}

Deno.test("problem words: facts have units, names stand for files, hints for themselves", () => {
  const facts = { nar: "abc.nar.xz", name: "hello-1.0", limit_bytes: 3 * 2 ** 30, count: 1_200 };
  const told = problem("nar not kept", { ...facts, reason: "timeout", hint: "raise it" });
  assert.deepEqual(factsInWords(told), [
    "hello-1.0",
    "it did not answer in time",
    "limit 3.0 GiB",
    "count 1,200",
  ]);
  assert.deepEqual(factsInWords(problem("upstream failed", { reason: "status", status: 503 })), [
    "it answered with HTTP status 503",
  ]);
  assert.equal(titleOf(told), "NAR not kept");
  assert.equal(whatToDo(told), "raise it");
  assert.match(whatToDo(problem("stored nar is damaged")) ?? "", /^check the disk/);
  assert.equal(whatToDo(problem("something new")), undefined);
});

Deno.test("problem words: each event has something to do, in its log line or here", () => {
  const calls = [...sourcesBelow("src")].flatMap((text) => [
    ...text.matchAll(/\blog\.(?:warn|error)\(\s*"(?<message>[^"]+)"(?<facts>[^;]*);/g),
  ]);
  assert.ok(calls.length > 20, "the events are found");
  const mute = calls.map(({ groups }) => ({ message: "", facts: "", ...groups }))
    .filter(({ facts }) => !/\bhint\b|advice/.test(facts))
    .filter(({ message }) => whatToDo(problem(message)) === undefined);
  assert.deepEqual(mute.map(({ message }) => message), []);
});

function* sourcesBelow(folder: string): Iterable<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) yield* sourcesBelow(`${folder}/${name}`);
    else if (name.endsWith(".ts")) yield Deno.readTextFileSync(`${folder}/${name}`);
  }
}
