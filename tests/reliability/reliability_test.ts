import assert from "node:assert/strict";
import { testWhere } from "../support/program.ts";
import { record } from "../support/reliability_record.ts";
import { CLIENT_ROWS } from "./client_rows.ts";
import { MACHINE_ROWS } from "./machine_rows.ts";
import { NAR_ROWS } from "./nar_rows.ts";
import type { Row } from "./row.ts";
import { Scene } from "./scene.ts";
import { UPSTREAM_ROWS } from "./upstream_rows.ts";
import { assertInTime } from "../support/timed_test.ts";

for (const row of [...UPSTREAM_ROWS, ...NAR_ROWS, ...CLIENT_ROWS, ...MACHINE_ROWS]) {
  testWhere(row.excuse ?? "", `reliability: ${row.fault}`, () => holds(row));
}

/** The fault has the outcome that its row says, and is over when it is over. */
async function holds(row: Row): Promise<void> {
  await using scene = await Scene.open(row);
  await row.breaks?.(scene);

  const [seen, tookMs] = await scene.timed(async () => await (row.asks?.(scene) ?? scene.pull()));
  const saw = row.saw === "refused" && (seen === "absent" || seen === "cut") ? "refused" : seen;
  const kept = await scene.kept();

  const { area, fault, withinMs } = row;
  assert.deepEqual({ saw, kept }, { saw: row.saw, kept: row.kept });
  assertInTime(tookMs, withinMs ?? Infinity);
  await scene.mended();
  record({ area, fault, saw, withinMs, kept });
}
