import assert from "node:assert/strict";
import { type Figures, partsTable } from "../../../scripts/bench/eviction/parts_table.ts";
import type { Spent } from "../../../scripts/bench/eviction/turns.ts";
import { narsAloneLine } from "../../../scripts/bench/first_pull/nars_alone.ts";

const QUICK: Spent = { ms: 1, onCoreMs: 1, readBytes: 0, writtenBytes: 0 };
const KEYS = ["use", "pin", "unpin", "considered", "evicted"] as const;
const STOPS = ["usesStop", "pinStop", "unpinStop", "evictionStop"] as const;

function figures(of: (key: keyof Figures) => Spent): Figures {
  const entries = [...KEYS, ...STOPS].map((key) => [key, of(key)] as const);
  return Object.fromEntries(entries) as Record<keyof Figures, Spent>;
}

const COUNTS = { small: 10_000, large: 1_000_000 };
const small = figures(() => QUICK);

/** The best round counts: the other one is slow in all. */
function tableOf(large: Figures): string {
  const slow = figures(() => ({ ...QUICK, ms: 1_000 }));
  return partsTable([{ small: slow, large: slow }, { small, large }], COUNTS);
}

Deno.test("bench missed: each missed row of eviction says where its time goes", () => {
  const slow = { ms: 10, onCoreMs: 8, readBytes: 3.5 * 4_096, writtenBytes: 4_096 };
  const text = tableOf(figures(() => slow));
  const missed = text.split("\n").filter((line) => line.startsWith("* Missed: "));
  const rows = text.split("\n").filter((line) => line.endsWith("| MISSED |"));
  // Evicted entries have no target.
  assert.deepEqual([missed.length, rows.length], [8, 8]);
  for (const line of missed) {
    assert.match(
      line,
      /1,000,000 on a core 80 %, blocked 20 %; 3\.5 pages of 4 KiB read, 1\.0 written\.$/,
    );
  }
});

Deno.test("bench missed: a row of eviction that reaches its target has no such line", () => {
  const text = tableOf(figures((key) => ({ ...QUICK, ms: key.endsWith("Stop") ? 5 : 2 })));
  assert.doesNotMatch(text, /MISSED|Missed/);
  assert.equal(text.match(/\| reached \|/g)?.length, 8);
});

Deno.test("bench missed: too many NARs for narinfos alone are listed by kind", () => {
  const narPaths = Array.from({ length: 61 }, (_, at) => `/nar/${Math.max(1, at)}`);
  const of = (count: number) =>
    narsAloneLine({ narinfos: 244, narPaths: narPaths.slice(-count), failed: 3, skipped: 100 });
  assert.match(of(60), /cost the upstream 60 NARs \(≤ 60: reached\)\.$/);
  assert.match(
    of(61),
    /: MISSED; 1 of them repeat one, 3 failed, larder skipped 100 NARs\)\.$/,
  );
});
