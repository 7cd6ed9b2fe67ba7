import assert from "node:assert/strict";
import { rows, type RowsLook } from "../../../src/http/page/rows.ts";

const all = Array.from({ length: 30 }, (_, index) => `row-${index};`);

function listOf(count: number): RowsLook {
  return { count, section: "packages", list: "pins", isWhole: false, range: "week" };
}

function shown(count: number, isWhole: boolean, more: Partial<RowsLook> = {}): string {
  const look = { ...listOf(count), isWhole };
  const { text } = rows(all, { ...look, ...more }, (one) => one);
  return text.replace(/row-\d+;/g, "R").replace(/<(?!a )[^>]*>/g, "");
}

Deno.test("page: of a long list 20 rows are there, and a link leads to all that are known", () => {
  const others = "R".repeat(18);
  const link = `<a id="all-pins"\n href="?all&amp;range=week#packages">Show all`;
  assert.equal(shown(30, false), `RR\n28 more${others}and 10 more. ${link}`);
  assert.equal(shown(1_234, false), `RR\n1,232 more${others}and 1,214 more. ${link}`);
  assert.equal(shown(30, true), "R".repeat(30));
  assert.equal(shown(31, true), `${"R".repeat(30)}and 1 more`);
});

Deno.test("page: of a list two rows at most are in sight, and a fold has the others", () => {
  const { text } = rows(all.slice(0, 2), listOf(2), (one) => one);
  assert.doesNotMatch(text, /<details/, "two need no fold");
  const three = rows(all.slice(0, 3), listOf(3), (one) => one).text;
  assert.match(three, /^<ul class="rows">row-0;row-1;<\/ul><details id="more-pins" class="more">/);
  assert.match(three, /row-2;<\/ul><\/details>$/);
  const calm = { inSight: 0, allAre: "up" };
  assert.match(shown(3, false, calm), /^\n3 upR/);
  assert.match(shown(3, false, { ...calm, inSight: 1 }), /^R\n2 moreR/);
});
