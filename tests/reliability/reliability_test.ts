import assert from "node:assert/strict";
import { playScene } from "../simulation/scene.ts";
import { record } from "../support/reliability_record.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { CLIENT_ROWS } from "./client_rows.ts";
import { MACHINE_ROWS } from "./machine_rows.ts";
import { NAR_ROWS } from "./nar_rows.ts";
import type { Row } from "./row.ts";
import { RowScene } from "./row_scene.ts";
import { UPLOAD_ROWS } from "./upload_rows.ts";
import { UPSTREAM_ROWS } from "./upstream_rows.ts";

for (
  const row of [...UPSTREAM_ROWS, ...NAR_ROWS, ...CLIENT_ROWS, ...UPLOAD_ROWS, ...MACHINE_ROWS]
) {
  Deno.test(`reliability: ${row.fault}`, () => holds(row));
}

/** The fault has the outcome that its row says, and is over when it is over. */
async function holds(row: Row): Promise<void> {
  using folder = row.isLocked && tempFolder();
  const databasePath = folder && `${folder.path}/db.sqlite`;
  const options = {
    upstreams: [{}],
    ...row.scene,
    ...databasePath !== undefined && { databasePath },
  };
  await playScene(options, async (played) => {
    const scene = new RowScene(played, options.objects?.[0], databasePath);
    row.breaks?.(scene);
    const startedAtMs = played.nowMs;
    const seen = await (row.asks?.(scene) ?? scene.pull());
    const afterMs = played.nowMs - startedAtMs;
    const saw = row.saw === "refused" && (seen === "absent" || seen === "cut") ? "refused" : seen;
    const kept = await scene.kept();

    const { area, fault, withinMs } = row;
    assert.deepEqual({ saw, kept }, { saw: row.saw, kept: row.kept });
    if (row.afterMs !== undefined) assert.equal(afterMs, row.afterMs);
    assert.ok(afterMs < (withinMs ?? Infinity), `it took ${afterMs} ms`);
    await (row.mended?.(scene) ?? scene.mended());
    record({ area, fault, saw, withinMs, afterMs: row.afterMs, kept });
  });
}
