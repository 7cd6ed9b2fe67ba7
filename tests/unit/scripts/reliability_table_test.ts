import assert from "node:assert/strict";
import { unlikeTable } from "../../../scripts/reliability_table.ts";

Deno.test("reliability table: tests inject each fault, and more than the README says", () => {
  const said = /more than (\d+) faults/.exec(Deno.readTextFileSync("README.md"))?.[1];
  const page = Deno.readTextFileSync("docs/reliability.md");
  const [, single = "", members = ""] = page.split(/^\| Fault \| .*$/m);
  const faults = [single, members].flatMap(rowsOf).map((row) => row.split(" | ", 1)[0]);
  assert.equal(new Set(faults).size, faults.length);
  assert.ok(faults.length > Number(said), `${faults.length} faults`);

  // A run of all tests fails for each fault that none of them has recorded. Where a server program
  // is missing, the tests of several machines record nothing, and their table stays.
  const unlike = new Set(unlikeTable(page, []));
  const unnamed = rowsOf(single).filter((row) => !unlike.has(`written: ${row}`));
  assert.deepEqual(unnamed, []);
});

Deno.test("reliability table: a fault that it lacks is named", () => {
  const page = Deno.readTextFileSync("docs/reliability.md");
  const unlike = unlikeTable(page, [
    { area: "client", fault: "a client that sings", saw: "whole", kept: "nar" },
  ]);
  assert.ok(unlike.some((line) => line.startsWith("seen: | a client that sings |")));
});

function rowsOf(table: string): readonly string[] {
  return table.match(/^\| [^|*-][^|]* \|.*$/gm) ?? [];
}
