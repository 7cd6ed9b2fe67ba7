import assert from "node:assert/strict";
import { fstatSync } from "node:fs";
import { priorityOf, writesToJournal } from "../../../src/app/log_format.ts";

Deno.test("journal: its own stream is known by device and inode, another's is not", () => {
  const { dev, ino } = fstatSync(1, { bigint: true });
  const variables = (value: string | undefined) => (name: string) =>
    name === "JOURNAL_STREAM" ? value : undefined;

  assert.equal(writesToJournal(variables(`${dev}:${ino}`)), true);
  assert.equal(writesToJournal(variables(`${dev}:${ino + 1n}`)), false, "inherited");
  for (const value of [undefined, "", "journal"]) {
    assert.equal(writesToJournal(variables(value)), false);
  }
});

Deno.test("journal: a line's priority is that of its level, and of nothing in its facts", () => {
  const line = (level: string) => JSON.stringify({ level, ts: "", msg: '{"level":"error"' });
  assert.deepEqual(["debug", "info", "warn", "error"].map((level) => priorityOf(line(level))), [
    "<7>",
    "",
    "<4>",
    "<3>",
  ]);
  assert.equal(priorityOf('{"resourceSpans":[]}'), "");
});
