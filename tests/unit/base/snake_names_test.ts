import assert from "node:assert/strict";
import { snakeNames } from "../../../src/base/snake_names.ts";

Deno.test("snake names: every name at every depth, and no value", () => {
  const given = { usedBytes: 1, list: [{ isUp: "isUp", lastAnswer: null }], snake_case: true };
  assert.deepEqual(snakeNames(given), {
    used_bytes: 1,
    list: [{ is_up: "isUp", last_answer: null }],
    snake_case: true,
  });
});
