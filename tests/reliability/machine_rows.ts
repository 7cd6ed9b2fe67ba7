import assert from "node:assert/strict";
import { makeStoreObject } from "../support/store_object.ts";
import type { Sight } from "../support/reliability_record.ts";
import { OBJECT } from "../simulation/scene.ts";
import type { Row } from "./row.ts";
import type { RowScene } from "./row_scene.ts";

const area = "machine";
const whole = { area, saw: "whole", kept: "nar" } as const;
const absent = { area, saw: "absent", kept: "narinfo" } as const;
const LOCKED_MS = 2_000;
/** A client that waits longer could as well ask its next substituter. */
const ANSWERED_MS = 1_500;

/** larder serves its NAR from memory. */
const hot = makeStoreObject({ name: "hot-1.0", size: 20_000 });
const large = makeStoreObject({ name: "large-1.0", size: 20_000_000 });
const pinned = makeStoreObject({ name: "pinned", size: 700_000, seed: 7 });

export const MACHINE_ROWS: readonly Row[] = [
  {
    fault: "a kept NAR file is truncated",
    ...whole,
    asks: (scene) => afterDamage(scene, truncate),
  },
  {
    fault: "bytes of a kept NAR file change, and its size stays",
    ...whole,
    asks: (scene) => afterDamage(scene, flip),
  },
  {
    fault: "bytes of a kept NAR file change, and no upstream has it any more",
    ...absent,
    asks: (scene) => afterDamage(scene, flip, "off"),
  },
  {
    fault: "bytes of a kept NAR file of 20 MB change",
    ...whole,
    scene: { objects: [large] },
    asks: (scene) => afterDamage(scene, flip),
  },
  {
    fault: "a kept NAR file is gone",
    ...whole,
    asks: (scene) => afterDamage(scene, remove),
  },
  {
    fault: "a kept NAR file is truncated, and no upstream has it any more",
    ...absent,
    asks: (scene) => afterDamage(scene, truncate, "off"),
  },
  {
    fault: "a small kept NAR file is gone while it is in memory, and no upstream has it any more",
    area,
    saw: "whole",
    kept: "damaged",
    scene: { objects: [hot] },
    asks: (scene) => afterDamage(scene, remove, "off"),
  },
  {
    fault: "another process locks the database for two seconds",
    isLocked: true,
    ...whole,
    asks: (scene) => whileLocked(scene, () => scene.scene.pause(LOCKED_MS)),
  },
  {
    fault: "another process locks the database until the NAR is given up",
    isLocked: true,
    area,
    saw: "whole",
    kept: "narinfo",
    asks: (scene) => whileLocked(scene, () => scene.scene.downloadsOver()),
  },
  {
    fault: "pins fill the size limit",
    area,
    saw: "whole",
    kept: "narinfo",
    scene: { objects: [OBJECT, pinned], limitBytes: 1_000_000 },
    async asks(scene) {
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
async function whileLocked(scene: RowScene, after: () => Promise<void>): Promise<Sight> {
  const free = scene.lock();
  const startedAtMs = scene.scene.nowMs;
  const sight = await scene.pull();
  assert.ok(scene.scene.nowMs - startedAtMs < ANSWERED_MS);
  await after();
  free();
  await scene.until(() =>
    scene.scene.database.prepare("SELECT 1 FROM narinfo").get() !== undefined
  );
  return sight;
}

function truncate(scene: RowScene, path: string): void {
  scene.scene.files.damage(path);
}

function flip(scene: RowScene, path: string): void {
  using file = scene.scene.files.openSync(path, { write: true });
  file.seekSync(1_000, Deno.SeekMode.Start);
  file.writeSync(new TextEncoder().encode("changed"));
}

function remove(scene: RowScene, path: string): void {
  scene.scene.files.removeSync(path);
}

/** Keeps the NAR, has it damaged behind larder's back, and asks for it again. */
async function afterDamage(
  scene: RowScene,
  damage: (scene: RowScene, path: string) => void,
  upstream?: "off",
): Promise<Sight> {
  assert.equal(await scene.pull(), "whole");
  await scene.quiet();
  assert.equal(await scene.pull(), "whole");
  // The damage has a time of its own.
  await scene.scene.pause(1_000);
  if (upstream === "off") scene.behave({ state: "refused" });
  damage(scene, scene.storedPath);
  return await scene.pull();
}
