import assert from "node:assert/strict";
import { leastRoundTrips } from "../../../scripts/bench/first_pull/round_trips.ts";

const path = (name: string, references: readonly string[], fileBytes = 1) => {
  return { name, references, fileBytes };
};

Deno.test("bench round trips: each level of the closure waits for the one above", () => {
  // A walk in breadth finds the short way to "d".
  const paths = [path("a", ["a", "b", "d"]), path("b", ["c"]), path("c", ["d"]), path("d", [])];
  assert.deepEqual(leastRoundTrips("a", paths, 10), { narinfos: 3, nars: 0 });
});

Deno.test("bench round trips: of one chain large NARs wait for each other, small ones not", () => {
  const paths = [
    path("a", ["b", "c"], 11),
    path("b", ["d"], 10),
    path("c", ["d"], 11),
    path("d", [], 12),
  ];
  assert.deepEqual(leastRoundTrips("a", paths, 10), { narinfos: 3, nars: 3 });
});
