import assert from "node:assert/strict";
import { logUnexpected } from "../../../src/app/serve.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { eventually } from "../../support/eventually.ts";

Deno.test("logUnexpected: an uncaught error is a log line, and the process goes on", async () => {
  const lines: string[] = [];
  using _logging = logUnexpected(createLogger("info", { write: (line) => void lines.push(line) }));
  Promise.reject(new Error("a bug in a promise"));
  setTimeout(() => {
    throw new Error("a bug in a timer");
  });
  await eventually("both are logged", () => lines.length === 2);

  const errors = lines.map((line) => JSON.parse(line)).map(({ level, error }) => [level, error]);
  assert.deepEqual(errors.sort(), [["error", "a bug in a promise"], ["error", "a bug in a timer"]]);
});
