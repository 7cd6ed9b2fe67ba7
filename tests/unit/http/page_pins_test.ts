import assert from "node:assert/strict";
import type { PinnedRootStats } from "../../../src/http/stats/stats.ts";
import { pinsPart } from "../../../src/http/page/pins_part.ts";

const LOOK = {
  isWhole: false,
  range: "day",
  mayManage: false,
  pinsFrom: 0,
  unpinned: undefined,
} as const;
const COUNTED = { stored: 2, missing: 0, bytes: 1_024, own_bytes: 512 };
const UNCOUNTED = { stored: null, missing: null, bytes: null, own_bytes: null };

const HELD = { under: ["ci/main", "host/laptop"], rolls: true };

/** The words about a cache with these pins, counted 13 seconds ago. */
type Counted = (typeof COUNTED | typeof UNCOUNTED) & Partial<typeof HELD>;

function told(...counts: readonly Counted[]): string {
  return toldOf(counts, {});
}

function toldOf(
  counts: readonly Counted[],
  notes: Partial<PinnedRootStats>,
): string {
  const roots = counts.map((count, index) => ({
    ...{ root: `root${index}`, name: `link-${index}`, pinned_at: "2026-01-02T03:04:05Z" },
    ...{ under: [], rolls: false },
    ...count,
    ...{ keep_complete: false, complete: null, look: null },
    ...notes,
  }));
  const pins = { count: roots.length, counted_at: "2026-01-02T03:04:03Z", roots };
  return pinsPart({ pins, size: { pinned_bytes: 1_536 }, at: "2026-01-02T03:04:16Z" }, LOOK).text
    .replace(/<[^>]*>/g, "");
}

/** The whole list of 298 pins, at the page behind the `pinsFrom` newest ones. */
function pageOf(pinsFrom: number): string {
  const roots = Array.from({ length: 298 }, (_, index) => ({
    ...{ root: `root${index}`, name: `link-${index}`, pinned_at: "2026-01-02T03:04:05Z" },
    ...{ under: [], rolls: false, ...COUNTED, keep_complete: false, complete: null, look: null },
  })).slice(pinsFrom, pinsFrom + 100);
  const pins = { count: 298, counted_at: null, roots };
  const look = { ...LOOK, isWhole: true, mayManage: true, pinsFrom };
  return pinsPart({ pins, size: { pinned_bytes: 1 }, at: "2026-01-02T03:04:16Z" }, look).text;
}

Deno.test("page: links lead through all pins of a long list, there and back", () => {
  const turnsOf = (html: string) =>
    [...html.matchAll(
      /<a id="(newer|older)-pins" href="\?all&amp;pins=(\d+)&amp;range=day#pins">/g,
    )]
      .map(([, way, at]) => `${way} ${at}`);
  assert.deepEqual(turnsOf(pageOf(0)), ["older 100"]);
  assert.deepEqual(turnsOf(pageOf(100)), ["newer 0", "older 200"]);
  assert.deepEqual(turnsOf(pageOf(200)), ["newer 100"]);
  assert.match(pageOf(200), /Pins 201 to 298 of 298\./);
  assert.match(pageOf(900), /No pins are that far back\./);
  assert.deepEqual(turnsOf(pageOf(900)), ["newer 198"]);
});

Deno.test("page: the time of the count stands below sizes that are all counted", () => {
  assert.match(told(COUNTED, COUNTED), /Sizes were counted 13 s ago/);
  const counting = told(UNCOUNTED, COUNTED);
  assert.match(counting, /being counted, pinned 11 s ago/);
  assert.doesNotMatch(counting, /Sizes were counted/);
});

Deno.test("page: a pin shows what it alone holds, and all pins their sum", () => {
  const two = told(COUNTED, COUNTED);
  assert.match(two, /512 B of its own, 1\.0 KiB in all, 2 paths here, 0 missing/);
  assert.match(two, /All 2 keep 1\.5 KiB together/);
  assert.doesNotMatch(told(COUNTED), /together/);
});

Deno.test("page: a pin that rolls shows its names, and if it is pinned by hand too", () => {
  assert.match(
    told({ ...COUNTED, ...HELD }),
    /pinned 11 s ago under ci\/main, host\/laptopIts paths are/,
  );
  const both = told({ ...COUNTED, ...HELD, rolls: false });
  assert.match(both, /pinned 11 s ago under ci\/main, host\/laptop and by handIts paths are/);
  assert.doesNotMatch(told(COUNTED), /under|by hand/);
});

Deno.test("page: a pin that lacks a path by the count is not complete, whatever its look says", () => {
  const look = { at: "2026-01-02T03:04:06Z", paths: 3, missing: 0, examples: [] };
  const notes = { look: { ...look, upstream: 0, nowhere: 0 } };
  const words = toldOf([{ ...COUNTED, missing: 1 } as unknown as Counted], notes);
  assert.match(words, /1 missing, .*Incomplete: 1 path missing since the last look/);
  assert.doesNotMatch(words, /Complete/);
  assert.match(toldOf([COUNTED], notes), /Complete: all 3 paths are here/);
});

Deno.test("page: a pin says whether it is complete, or what is missing and where it is", () => {
  const at = "2026-01-02T03:04:06Z";
  const whole = { at, paths: 3, missing: 0, upstream: 0, nowhere: 0, examples: [] };
  assert.match(toldOf([COUNTED], {}), /Its paths are being looked at, for the first time/);
  assert.match(
    toldOf([COUNTED], { complete: true, look: whole }),
    /Complete: all 3 paths are here, looked at 10 s ago/,
  );
  assert.match(
    toldOf([COUNTED], { complete: true, look: { ...whole, paths: 1 } }),
    /Complete: its 1 path is here, looked at 10 s ago/,
  );
  assert.match(
    toldOf([COUNTED], { complete: true, keep_complete: true, look: whole }),
    /Complete, and larder keeps it so: all 3 paths/,
  );
  const short = { ...whole, missing: 4, upstream: 2, nowhere: 1, examples: ["glibc-2.40", "a-1"] };
  assert.match(
    toldOf([COUNTED], { complete: false, look: short }),
    /Incomplete: 4 paths missing \(2 upstream still has, 1 nowhere, 1 unknown\): glibc-2\.40, a-1 and others/,
  );
  assert.match(
    toldOf([COUNTED], { complete: false, look: { ...short, unasked: 1 } }),
    /4 paths missing \(2 upstream still has, 1 nowhere, 1 not asked yet\)/,
  );
});
