import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { clock } from "../../src/runtime/current.ts";
import { eventually } from "../support/eventually.ts";
import type { Sight } from "../support/reliability_record.ts";
import { NARS_ELSEWHERE, ROWS_ELSEWHERE } from "../support/shared_servers.ts";
import { narFilesIn } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { Row } from "./row.ts";
import type { Scene } from "./scene.ts";
import { assertInTime } from "../support/timed_test.ts";

const area = "machine";
const whole = { area, saw: "whole", kept: "nar" } as const;
/** The size of a NAR that larder serves from memory. */
const HOT_BYTES = 50_000;
const LOCKED_MS = 2_000;
/** A client that waits longer could as well ask its next substituter. */
const ANSWERED_MS = 1_500;

const pinned = makeStoreObject({ name: "pinned", size: 700_000, seed: 7 });

export const MACHINE_ROWS: readonly Row[] = [
  {
    fault: "a kept NAR file is truncated",
    ...whole,
    asks: (scene) => afterDamage(scene, (path) => Deno.truncateSync(path, 1_000)),
  },
  {
    fault: "bytes of a kept NAR file change, and its size stays",
    excuse: NARS_ELSEWHERE,
    ...whole,
    asks: (scene) => afterDamage(scene, flip),
  },
  {
    fault: "bytes of a kept NAR file change, and no upstream has it any more",
    excuse: NARS_ELSEWHERE,
    area,
    saw: "absent",
    kept: "narinfo",
    asks: (scene) => afterDamage(scene, flip, "off"),
  },
  {
    fault: "bytes of a kept NAR file of 20 MB change",
    excuse: NARS_ELSEWHERE,
    ...whole,
    narBytes: 20_000_000,
    asks: (scene) => afterDamage(scene, flip),
  },
  {
    fault: "a kept NAR file is gone",
    ...whole,
    asks: (scene) => afterDamage(scene, (path) => Deno.removeSync(path)),
  },
  {
    fault: "a kept NAR file is truncated, and no upstream has it any more",
    area,
    saw: "absent",
    kept: "narinfo",
    asks: (scene) => afterDamage(scene, (path) => Deno.truncateSync(path, 1_000), "off"),
  },
  {
    fault: "a small kept NAR file is gone while it is in memory, and no upstream has it any more",
    area,
    saw: "whole",
    kept: "damaged",
    narBytes: HOT_BYTES,
    asks: (scene) => afterDamage(scene, (path) => Deno.removeSync(path), "off"),
  },
  {
    fault: "another process locks the database for two seconds",
    excuse: ROWS_ELSEWHERE,
    ...whole,
    asks: (scene) => whileLocked(scene, () => clock.pause(LOCKED_MS)),
  },
  {
    fault: "another process locks the database until the NAR is given up",
    excuse: ROWS_ELSEWHERE,
    area,
    saw: "whole",
    kept: "narinfo",
    asks: (scene) => whileLocked(scene, () => scene.quiet()),
  },
  {
    fault: "pins fill the size limit",
    area,
    saw: "whole",
    kept: "narinfo",
    flags: { "cache-max-size": "1M" },
    async asks(scene) {
      scene.upstream.add(pinned);
      assert.equal(await scene.pull(pinned), "whole");
      await scene.quiet();
      const { status } = await scene.request("POST", `/pin/${pinned.storePathHash}.narinfo`);
      assert.equal(status, 200);
      const sight = await scene.pull();
      assert.equal(await scene.kept(pinned), "nar", "the pinned path stays");
      return sight;
    },
  },
];

/** Pulls while the database is locked, which must not take long; then frees it `after` that. */
async function whileLocked(scene: Scene, after: () => Promise<void>): Promise<Sight> {
  const locker = new DatabaseSync(`${scene.storage}/db.sqlite`, { timeout: 5_000 });
  locker.exec("BEGIN IMMEDIATE");
  const [sight, tookMs] = await scene.timed(() => scene.pull());
  await after();
  locker.exec("COMMIT");
  await eventually("the narinfo is written", () => {
    return locker.prepare("SELECT 1 FROM narinfo").get() !== undefined;
  });
  locker.close();
  assertInTime(tookMs, ANSWERED_MS);
  return sight;
}

function flip(path: string): void {
  using file = Deno.openSync(path, { write: true });
  file.seekSync(1_000, Deno.SeekMode.Start);
  file.writeSync(new TextEncoder().encode("changed"));
}

/** Keeps the NAR, has it damaged behind larder's back, and asks for it again. */
async function afterDamage(scene: Scene, damage: (path: string) => void, upstream?: "off") {
  assert.equal(await scene.pull(), "whole");
  await scene.quiet();
  assert.equal(await scene.pull(), "whole");
  if (upstream === "off") await scene.upstream.stop();
  const [path] = narFilesIn(scene.storage).keys();
  assert.ok(path);
  damage(path);
  return await scene.pull();
}
