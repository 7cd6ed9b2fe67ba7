import assert from "node:assert/strict";
import { mutantsOf } from "../../../scripts/mutants/plant.ts";

const TEXT = `
type Yes = true;
export function keeps(count: number, isOn: boolean): boolean {
  if (count >= 3 && !isOn) return false;
  note(count);
  return count !== 1;
}
const other = 1 < 2;
`;

Deno.test("mutants: each fault of a function is planted alone, and none beside it", () => {
  const mutants = mutantsOf("src/x.ts", TEXT, "keeps");
  assert.deepEqual(mutants.map(({ line, before, after }) => `${line}: ${before} -> ${after}`), [
    "4: && -> ||",
    "4: >= -> >",
    "4: !isOn -> isOn",
    "4: false -> true",
    "5: note(count); -> ;",
    "6: !== -> ===",
  ]);
  const [first] = mutants;
  assert.equal(first?.text, TEXT.replace("&&", "||"));
});

Deno.test("mutants: a name that the file does not have gets none", () => {
  assert.deepEqual(mutantsOf("src/x.ts", TEXT, "absent"), []);
});
