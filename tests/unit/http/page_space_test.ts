import type { SizeStats } from "../../../src/http/stats/stats.ts";
import assert from "node:assert/strict";
import { spacePart } from "../../../src/http/page/space_part.ts";

const MIB = 2 ** 20;

/** The part as text, for bytes in MiB. */
function told(
  { limit, diskFree, zstd = 0 }: { limit: number | null; diskFree: number | null; zstd?: number },
): string {
  const size: SizeStats = {
    ...{ used_bytes: 30 * MIB, pinned_bytes: 10 * MIB, reserved_bytes: 20 * MIB },
    limit_bytes: limit === null ? null : limit * MIB,
    disk_free_bytes: diskFree === null ? null : diskFree * MIB,
    limit_source: limit === null ? "unlimited" : "set",
    disk_reserve_bytes: null,
    ...{ evicted_bytes: 0, evicted_entries: 0, database_bytes: 40 * MIB },
    recompressed_bytes: zstd * MIB,
  };
  const { text } = spacePart({ size });
  return text.replace(/<[^>]*>/g, " ").replace(/\.0 MiB/g, "").replace(/\s+/g, " ");
}

const STORED = "Pinned 10 Cached 20 Reserved 20";

Deno.test("page: the bar of space ends at the limit, or at the end of the disk", () => {
  assert.match(told({ limit: 100, diskFree: 70 }), new RegExp(`limit 100 ${STORED} Free 50`));
  assert.match(
    told({ limit: null, diskFree: 70 }),
    new RegExp(`end of the disk ${STORED} Free 70`),
  );
  assert.match(
    told({ limit: null, diskFree: null }),
    new RegExp(`${STORED} No limit is from --cache-max-size unlimited. 0 B`),
  );
  assert.match(told({ limit: null, diskFree: null }), /The database takes 40\./);
});

Deno.test("page: what recompression gained is told, and only where it gained something", () => {
  const place = { limit: 100, diskFree: 70 };
  assert.match(told({ ...place, zstd: 12 }), /Faster pulls: 12 now in zstd\./);
  assert.doesNotMatch(told(place), /zstd/);
});

Deno.test("page: space that the limit allows and the disk lacks is a share of its own", () => {
  const short = told({ limit: 100, diskFree: 15 });
  assert.match(short, new RegExp(`${STORED} Free 15 Missing on the disk 35 Free on the disk 15`));
  assert.match(short, /The disk is too small for the limit/);
});
