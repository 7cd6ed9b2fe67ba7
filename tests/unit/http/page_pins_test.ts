import assert from "node:assert/strict";
import { pinsPart } from "../../../src/http/page/pins_part.ts";

const LOOK = { isWhole: false, range: "day", mayManage: false } as const;
const COUNTED = { stored: 2, missing: 0, bytes: 1_024, own_bytes: 512 };
const UNCOUNTED = { stored: null, missing: null, bytes: null, own_bytes: null };

const HELD = { under: ["ci/main", "host/laptop"], rolls: true };

/** The words about a cache with these pins, counted 13 seconds ago. */
function told(
  ...counts: readonly ((typeof COUNTED | typeof UNCOUNTED) & Partial<typeof HELD>)[]
): string {
  const roots = counts.map((count, index) => ({
    ...{ root: `root${index}`, name: `link-${index}`, pinned_at: "2026-01-02T03:04:05Z" },
    ...{ under: [], rolls: false },
    ...count,
  }));
  const pins = { count: roots.length, counted_at: "2026-01-02T03:04:03Z", roots };
  return pinsPart({ pins, size: { pinned_bytes: 1_536 }, at: "2026-01-02T03:04:16Z" }, LOOK).text
    .replace(/<[^>]*>/g, "");
}

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
  assert.match(told({ ...COUNTED, ...HELD }), /pinned 11 s ago under ci\/main, host\/laptopSizes/);
  const both = told({ ...COUNTED, ...HELD, rolls: false });
  assert.match(both, /pinned 11 s ago under ci\/main, host\/laptop and by handSizes/);
  assert.doesNotMatch(told(COUNTED), /under|by hand/);
});
