import assert from "node:assert/strict";

Deno.test("reliability table: it has more faults than the README says", () => {
  const said = /more than (\d+) faults/.exec(Deno.readTextFileSync("README.md"))?.[1];
  const page = Deno.readTextFileSync("docs/reliability.md");
  const [, ...tables] = page.split(/^\| Fault \| .*$/m);
  const faults = tables.flatMap((table) => table.match(/^\| [^|*-][^|]* \|/gm) ?? []);
  assert.equal(new Set(faults).size, faults.length);
  assert.ok(faults.length > Number(said), `${faults.length} faults`);
});
