import assert from "node:assert/strict";
import { mutantsOf } from "../../../scripts/mutants/plant.ts";

const TEXT = `
type Yes = true;
export async function keeps(count: number, isOn: boolean): Promise<boolean> {
  if (count >= 3 && !isOn) return false;
  note(count);
  await Promise.all([]);
  if (isOn) return true;
  return Math.min(count - 1, 2) !== 1;
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
    "6: await Promise.all([]); -> ;",
    "6: await Promise.all([]); -> Promise.all([]);",
    "7: isOn -> !(isOn)",
    "7: true -> false",
    "8: !== -> ===",
    "8: Math.min -> Math.max",
    "8: - -> +",
  ]);
  const [first] = mutants;
  assert.equal(first?.text, TEXT.replace("&&", "||"));
});

Deno.test("mutants: without a name the whole file gets them", () => {
  const lines = mutantsOf("src/x.ts", TEXT).map(({ line }) => line);
  assert.deepEqual([lines.includes(4), lines.includes(10)], [true, true]);
});

Deno.test("mutants: a name that the file does not have gets none", () => {
  assert.deepEqual(mutantsOf("src/x.ts", TEXT, "absent"), []);
});
