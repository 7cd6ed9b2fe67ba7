import assert from "node:assert/strict";
import { rows } from "../../../src/http/page/rows.ts";

const all = Array.from({ length: 30 }, (_, index) => `row-${index};`);

function shown(count: number, isWhole: boolean): string {
  const look = { count, section: "packages", list: "pins", isWhole, range: "week" } as const;
  const { text } = rows(all, look, (one) => one);
  return text.replace(/row-\d+;/g, "R").replace(/<(?!a )[^>]*>/g, "");
}

Deno.test("page: of a long list 20 rows are shown, and a link leads to all that are known", () => {
  const twenty = "R".repeat(20);
  assert.equal(
    shown(30, false),
    `${twenty}and 10 more. <a id="all-pins"\n href="?all&amp;range=week#packages">Show all`,
  );
  assert.equal(
    shown(1_234, false),
    `${twenty}and 1,214 more. <a id="all-pins"\n href="?all&amp;range=week#packages">Show all`,
  );
  assert.equal(shown(30, true), "R".repeat(30));
  assert.equal(shown(31, true), `${"R".repeat(30)}and 1 more`);
});
