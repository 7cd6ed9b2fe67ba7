import assert from "node:assert/strict";
import { verdictOf } from "../../../src/http/stats/verdict.ts";
import { problemKinds } from "../../../src/http/stats/problem_kinds.ts";
import type { SizeStats } from "../../../src/http/stats/stats.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type EventKind, type EventRow, EVENTS } from "../../../src/telemetry/events.ts";
import { quietWhileAway } from "../../../src/telemetry/quiet_while_away.ts";
import { RecentProblems } from "../../../src/telemetry/recent_problems.ts";

const KINDS = Object.keys(EVENTS) as EventKind[];

Deno.test("events: each that begins a problem names the one that ends it", () => {
  const ends = new Set<string>();
  for (const kind of KINDS) {
    const { endedBy, level } = EVENTS[kind];
    if (endedBy === undefined) continue;
    assert.equal(EVENTS[endedBy as EventKind]?.level, "info", `${kind} is ended by ${endedBy}`);
    assert.notEqual(level, "info", kind);
    ends.add(endedBy);
  }
  const others = KINDS.filter((kind) => EVENTS[kind].level === "info" && !ends.has(kind));
  assert.deepEqual(others, [], "an event that ends nothing is a line of the log, and no event");
});

Deno.test("events: the begins of one end are of one part, and alike", () => {
  const begins = Map.groupBy(
    KINDS.filter((kind) => EVENTS[kind].endedBy !== undefined),
    (kind) => EVENTS[kind].endedBy,
  );
  for (const kinds of begins.values()) {
    const told = new Set(kinds.map((kind) => {
      const { part, level, isPerUpstream, isState, needs, explains } = EVENTS[kind];
      return JSON.stringify({ part, level, isPerUpstream, isState, needs, explains });
    }));
    assert.equal(told.size, 1, kinds.join());
  }
});

Deno.test("events: each is raised, an outage by its log alone", () => {
  const source = textsBelow("src").filter(([path]) => !path.endsWith("/events.ts"))
    .map(([, text]) => text).join("\n");
  for (const kind of KINDS) {
    const told = [...source.matchAll(new RegExp(`\\b(event|failed)\\(\\s*"${kind}"`, "g"))]
      .map(([, method]) => method);
    const { endedBy, fades, level } = EVENTS[kind];
    if (fades || KINDS.some((other) => EVENTS[other].fades && EVENTS[other].endedBy === kind)) {
      assert.ok(told.every((method) => method === "event"), kind);
    } else if (endedBy !== undefined) {
      assert.ok(told.every((method) => method === "failed"), kind);
      assert.match(source, new RegExp(`OutageLog\\([\\w.]+, "${endedBy}"\\)`));
    } else if (level === "info") {
      assert.deepEqual(told, [], `${kind} is logged by its outage`);
    }
    assert.match(source, new RegExp(`"${kind}"`), "nobody raises it");
  }
});

Deno.test("events: each has something to do, unless its facts say what", () => {
  /** Their lines have a hint each time. */
  const byFacts: readonly EventKind[] = ["signing-key-differs", "upstream-untrusted"];
  /** Their other facts say it. */
  const plain: readonly EventKind[] = [
    ...["request-failed", "connections-closed", "variable-invalid"] as const,
    ...["telemetry-dropped", "log-lines-dropped"] as const,
  ];
  const mute = KINDS.filter((kind) => {
    const { level, hint, remedy } = EVENTS[kind];
    return level !== "info" && hint === undefined && remedy === undefined;
  });
  assert.deepEqual(mute.toSorted(), [...byFacts, ...plain].toSorted());
});

Deno.test("events: no two have the same words, which people look for", () => {
  const words = KINDS.map((kind) => EVENTS[kind].words);
  assert.equal(new Set(words).size, words.length);
});

Deno.test("events: a reworded message changes nothing but its line and its title", () => {
  const before = story();
  const worded = Object.fromEntries(KINDS.map((kind) => [kind, { ...EVENTS[kind] }]));
  try {
    for (const kind of KINDS) reword(EVENTS[kind], { words: `it is about ${kind.length} ${kind}` });
    const after = story();
    assert.deepEqual(after.kinds, before.kinds);
    assert.deepEqual(after.faults, before.faults);
    assert.deepEqual(after.problems, before.problems);
    assert.equal(after.lines.length, before.lines.length);
    assert.ok(after.lines.every((line) => line.startsWith("it is about ")));
  } finally {
    for (const kind of KINDS) reword(EVENTS[kind], worded[kind] ?? {});
  }
  assert.deepEqual(story(), before);
});

function reword(row: EventRow, other: Partial<EventRow>): void {
  Object.assign(row, other);
}

/** An outage of the database with what it quiets, and every other begin once, as each reader has it. */
function story() {
  let nowMs = 1_000;
  const lines: string[] = [];
  const problems = new RecentProblems(() => nowMs);
  const quiet = createLogger("info", { write: (line) => void lines.push(JSON.parse(line).msg) });
  const log = quietWhileAway({ log: problems.watch(quiet), quiet, nowMs: () => nowMs });
  log.event("database-away");
  log.event("touches-not-written");
  log.event("seal-not-written", { nar: "0.nar" });
  log.event("touches-not-written", {}, "debug");
  log.event("database-back");
  nowMs += 60_000;
  log.event("touches-not-written", {}, "debug");
  log.event("touches-written");
  for (const kind of KINDS) {
    nowMs += 60_000;
    // Each outage lasts, and none quiets the others.
    if (EVENTS[kind].explains === undefined && EVENTS[kind].level !== "info") {
      log.event(kind, { upstream: "https://a.example", nar: "1.nar" });
    }
  }
  const list = problems.list();
  const { faults } = verdictOf({ upstreams: [], size: ROOMY, problems: list, atMs: nowMs });
  return {
    lines,
    problems: list.map(({ message: _, ...problem }) => problem),
    faults: faults.map(({ level, hint }) => ({ level, hint })),
    kinds: problemKinds(list.map((one) => ({ ...one, over_at: one.overAtMs ? "then" : null })))
      .map((kind) => kind.map(({ event }) => event)),
  };
}

const ROOMY: SizeStats = {
  ...{ used_bytes: 0, reserved_bytes: 0, pinned_bytes: 0, limit_bytes: null },
  ...{ limit_source: "unlimited", disk_free_bytes: null, disk_reserve_bytes: null },
  ...{ evicted_bytes: 0, evicted_entries: 0 },
} as SizeStats;

function textsBelow(folder: string): readonly (readonly [path: string, text: string])[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return textsBelow(path);
    return path.endsWith(".ts") ? [[path, Deno.readTextFileSync(path)] as const] : [];
  });
}
